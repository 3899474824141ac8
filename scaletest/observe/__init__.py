"""Processes of this machine: guards that end what a killed parent leaves behind, waiting without
polling.

Knows nothing of Redis, Kubernetes or requests, and imports nothing of the project but the model.
"""
