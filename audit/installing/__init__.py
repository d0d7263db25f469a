"""What is installed: the index, locks, interpreters, virtualenvs, all through uv."""
