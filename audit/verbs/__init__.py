"""The verbs of the command line, but for those that are a few lines in cli.py."""
