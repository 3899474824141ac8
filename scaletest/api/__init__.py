"""What Python programs use: `import scaletest` shows these names, each loaded at its first use.

It starts no command line and prints nothing: it calls what the commands call.
"""
