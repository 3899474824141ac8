"""Workers: processes that take requests from a queue and run one workload on 0 or 1 devices."""
