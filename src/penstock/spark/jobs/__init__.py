"""A whole pipeline as a TOML file, and the command that runs it."""
