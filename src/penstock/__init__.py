"""Complex event processing that keeps its latency bound."""
