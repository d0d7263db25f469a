"""What people read: the summary of a run, its forms for machines, and what the page shows."""
