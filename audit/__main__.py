"""``python -m audit`` is ``release-audit``."""

from audit.guard import main

main()
