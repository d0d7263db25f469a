"""The verbs of the command line, but for those that are short enough for cli.py; what several share."""
