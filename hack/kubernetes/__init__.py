"""A real Kubernetes control plane on this machine, from the tools that hack/tool builds, for tests and trials.

plane.py starts and ends it; pools.py has the fake nodes, node.py the real one in the namespaces of box.py; flags.py,
settings.py, keys.py and process.py are what they need.
"""

from hack.kubernetes.plane import ControlPlane, Refused
from hack.kubernetes.pools import Pool
from hack.kubernetes.process import NotBuilt, tool

__all__ = ["ControlPlane", "NotBuilt", "Pool", "Refused", "tool"]
