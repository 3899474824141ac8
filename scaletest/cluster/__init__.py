"""Kubernetes: the only room that speaks to its API server.

It needs no more rights than each function says. The client library is imported when it is used, since that takes long.
"""
