"""What differs: comparisons of behaviours, controls, certificates, second looks."""
