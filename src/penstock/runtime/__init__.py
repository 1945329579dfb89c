"""One operator in one process: a queue, a clock, an engine and a shedder put together."""
