"""What runs inside a release's virtualenv.

Standard library and that virtualenv's numpy only, syntax of Python 3.8, no import of the rest of the project: the
release under audit decides which Python and which numpy this code meets.
"""
