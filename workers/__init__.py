"""Workers: processes that take requests from one queue and run one workload, on at most one device
each.
"""
