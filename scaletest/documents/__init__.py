"""Documents that people write in YAML, the templates in them, and words as typed arguments."""
