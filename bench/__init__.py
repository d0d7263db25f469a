"""Measurements: this harness against the obvious one, the dumper against a bare loop. Run by ``make bench``."""
