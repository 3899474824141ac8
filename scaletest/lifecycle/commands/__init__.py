"""The command `scaletest lifecycle`."""
