"""The commands `scaletest validate` and `scaletest quick`."""
