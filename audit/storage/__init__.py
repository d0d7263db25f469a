"""What is kept: the store, its tables and views, arrays beside it, copies of it, queries by name."""
