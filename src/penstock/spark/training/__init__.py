"""Observations for models of shedding, gathered by Spark jobs, and the quality of results."""
