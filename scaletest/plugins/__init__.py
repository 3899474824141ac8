"""What other packages add to scaletest by entry points."""
