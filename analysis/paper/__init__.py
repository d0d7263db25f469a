"""The experiments of the paper, computed anew: systems, faults, baselines."""
