"""Experiments: streams that are made (`generators`) or recorded (`readers`), and what they are like (`statistics`)."""
