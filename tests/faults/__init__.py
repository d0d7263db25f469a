"""Hostile days: what goes wrong stays where it is, is told, loses nothing, and is made good by the same command."""
