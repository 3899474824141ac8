"""Autoscaling on a virtual clock: exact models of HPA and KEDA, a cluster of pods, and what they make of a workload.

Pure: chance is a parameter, time is a number, and nothing here knows Kubernetes.
"""
