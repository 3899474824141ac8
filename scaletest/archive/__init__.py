"""What runs are made with, on disk and in databases: files for their owner's eyes, the environment
of a run, and samples as SQL.
"""
