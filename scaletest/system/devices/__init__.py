"""Devices: what the processes of a request did on them, and what those of this node do as a
whole.
"""
