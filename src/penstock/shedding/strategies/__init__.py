"""What to shed: one file per strategy, named as its paper names it."""
