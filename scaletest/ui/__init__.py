"""The pages of `scaletest ui`: queues and workers of a Redis, and the runs of an archive.

It only reads, and keeps nothing but copies of what it read. Every page is made on the server and
whole without a script; a script renews its parts in place.
"""
