"""What runs are made with on disk: files for their owner's eyes, the environment of a run, and
queries over its samples.
"""
