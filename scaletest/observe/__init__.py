"""Where the processes of requests spend their time, and what the node does meanwhile.

All of it is read from /proc, /sys and the drivers of devices, without privileges.
"""
