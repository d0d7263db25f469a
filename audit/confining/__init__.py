"""The bounds of every process that runs a release's code, and what of them this machine offers."""
