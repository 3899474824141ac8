"""Devices: what the processes of a request did on them, and what all of this node do."""
