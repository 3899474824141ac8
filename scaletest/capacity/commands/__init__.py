"""The commands `scaletest autoscale` and `scaletest size`."""
