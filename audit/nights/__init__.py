"""Every night: what is new, what it stands for, what has been accepted, and what makes a machine do it."""
