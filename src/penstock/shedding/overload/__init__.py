"""When there is too much to do, and how much of it must go."""
