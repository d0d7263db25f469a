"""What can be wrong with data or with a law, in one sentence that a user can act on."""

from __future__ import annotations


class BadData(ValueError):
    """Trajectories that nothing can be said of: missing columns, not-a-number, too few samples."""


class BadLaw(ValueError):
    """An expression that is no polynomial, or names what is not there."""
