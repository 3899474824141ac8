"""From the results of benchmarks to a verdict. Pure."""
