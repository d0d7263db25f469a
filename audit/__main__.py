"""``python -m audit`` is ``release-audit``."""

from audit.cli import main

main()
