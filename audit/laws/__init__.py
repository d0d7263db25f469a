"""Which law broke: reference sets, the laws stage, trajectories from anywhere."""
