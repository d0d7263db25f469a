"""Mathematics on arrays: comparison and verdicts. It knows nothing of processes, databases or Ray."""
