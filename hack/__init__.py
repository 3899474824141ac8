"""Scripts that people run, and what they need."""
