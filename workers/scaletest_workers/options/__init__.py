"""What workloads are told in words, and what their tools print. Pure."""
