"""Documents of benchmarks and sets: read, expanded, and described to editors and clusters."""
