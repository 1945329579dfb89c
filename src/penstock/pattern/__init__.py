"""What is asked: the query language, as text, as a tree and as Python. Imports nothing heavy."""
