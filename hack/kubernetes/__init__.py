"""A real Kubernetes control plane on this machine, for tests and trials.

Its programs are built by hack/tool. plane.py starts and ends it; pools.py defines fake nodes,
node.py the real node, which runs in the namespaces of box.py; flags.py, settings.py, keys.py and
process.py have their flags, configuration files, certificates and process handling.
"""

from hack.kubernetes.plane import CommandFailed, ControlPlane
from hack.kubernetes.pools import Pool
from hack.kubernetes.process import NotBuilt, tool

__all__ = ["CommandFailed", "ControlPlane", "NotBuilt", "Pool", "tool"]
