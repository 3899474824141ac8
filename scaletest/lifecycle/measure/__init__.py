"""Submit workloads to a cluster, and follow what becomes of them."""
