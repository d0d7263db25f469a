"""Why: stages and constants of changed pairs, searches for the distribution and the version, reproducers."""
