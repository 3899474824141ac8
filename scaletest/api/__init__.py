"""The Python interface: what `import scaletest` offers."""
