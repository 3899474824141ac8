"""Documents of kube-perftest and of its successor.

Their kinds and fields are those of `scaletest.kinds`, so that only the API groups differ.
"""

from __future__ import annotations

GROUPS = ("perftest.stackhpc.com", "perftest.nscale.com")


def written_for(api_version: object) -> bool:
    """Whether a document with this apiVersion is one of theirs."""
    return str(api_version).partition("/")[0] in GROUPS
