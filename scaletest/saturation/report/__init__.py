"""Reports of saturation runs."""
