"""Queries in one process: what `penstock.Engine` is made of."""
