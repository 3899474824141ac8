"""The commands `scaletest bench` and `scaletest operator`."""
