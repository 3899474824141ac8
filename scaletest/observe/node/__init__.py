"""The node that this process runs on: its CPUs, memory, disks and networks, and our container."""
