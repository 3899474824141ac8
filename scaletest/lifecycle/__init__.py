"""Measure how fast a cluster brings workloads up: submit N objects, watch them, note when.

Only `scaletest.cluster` speaks to the cluster. What the times say is for `judging`, and what people
see of it for `report`; nothing is computed or drawn here.
"""
