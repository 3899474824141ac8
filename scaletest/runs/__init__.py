"""What all run types share: their folder on disk, where folders lie and how a run is found by its
name, and the registry of run types.
"""
