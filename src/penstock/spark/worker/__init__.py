"""What Python workers do: tables in, tables out. Nothing here needs a Spark session."""
