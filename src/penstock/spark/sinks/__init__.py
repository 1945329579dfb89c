"""Sinks that write each batch once, even if Spark runs it again."""
