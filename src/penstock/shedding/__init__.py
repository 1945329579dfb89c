"""What to drop when more comes than can be processed in time, and when, and how much of it."""
