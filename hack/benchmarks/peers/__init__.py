"""Our worker beside the task queues that people would use instead, each in an environment of its
own.
"""
