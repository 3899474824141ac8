"""Reconcile benchmarks and sets, as Kubernetes objects, until they have ended: the operator.

It remembers nothing between two passes but copies of what the watches report: each reconcile pass
reads the cluster and takes the next missing action, so the process may be killed at any moment.
`scaletest.benchmarks` measures; this package has status, lock, turns, sets, and the handlers of
kopf, which says when to reconcile.
"""
