"""A real Ray cluster of several nodes on one machine, to try an audit on and to test it with."""
