"""Loads a service or a queue, from this process or from agents."""
