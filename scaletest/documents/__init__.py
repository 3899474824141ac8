"""What people write: YAML documents, and the templates in them."""
