"""What a run or a night came to, for machines: one frozen value, and a file for each form that it is written in."""
