"""The orchestrator: from a matrix of releases to verdicts in a database."""

__version__ = "0.1.0"
