"""A workload and a benchmark kind for scaletest."""
