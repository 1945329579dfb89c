"""How it is found: a query as tables that the kernel runs."""
