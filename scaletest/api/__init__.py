"""What Python programs use. `import scaletest` shows these names, and loads each when it is used
first.

It starts no command line and prints nothing: it calls what the commands call.
"""
