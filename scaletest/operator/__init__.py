"""The operator: benchmarks and sets as Kubernetes objects, moved on until they have ended.

It keeps nothing in memory but copies of what the watches brought or are about to bring: each look reads the cluster
anew and does the next thing that is missing, so that it may be killed at any moment. Measuring is the benchmarks
room's; here are status, lock, line, accounts, sets, and kopf, which says when to look.
"""
