"""What all run types share: interface and registry, their folder on disk, and how one is found.

Progress of runs is shown, and signals that stop one are handled, in one way for all types.
"""
