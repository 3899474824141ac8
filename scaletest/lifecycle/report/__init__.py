"""Reports of lifecycle runs."""
