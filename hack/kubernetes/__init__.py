"""A real Kubernetes control plane on this machine, from the tools that hack/tool builds, for tests and trials.

plane.py starts and ends it; pools.py has the fake nodes; flags.py, keys.py and process.py are what it needs.
"""

from hack.kubernetes.plane import ControlPlane, Refused
from hack.kubernetes.pools import Pool
from hack.kubernetes.process import NotBuilt, tool

__all__ = ["ControlPlane", "NotBuilt", "Pool", "Refused", "tool"]
