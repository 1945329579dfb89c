"""The hot part: numpy and numba only."""
