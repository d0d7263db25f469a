"""Exact algebra of what a simulator conserves: recovery from data, equality, screening, attribution.

Polynomials have rational coefficients and are SymPy's; numbers on data are NumPy's. ``reference`` says what a law is,
``screening`` which law broke, ``recovery`` finds a law in data, ``attribution`` tells which constant made it so.
"""
