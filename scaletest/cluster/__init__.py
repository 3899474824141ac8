"""Kubernetes: the only package that speaks to the API server.

Each function names the rights that it needs. The client library is imported where it is used,
since that takes long.
"""
