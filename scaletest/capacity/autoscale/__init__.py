"""Autoscaling on a virtual clock: exact models of HPA and KEDA, and the pods that they scale.

Pure: chance is a parameter, time is a number, and nothing here uses Kubernetes.
"""
