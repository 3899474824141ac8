"""The command `scaletest saturate`."""
