"""What people and programs read about a run; everything printed is also in the JSON result."""
