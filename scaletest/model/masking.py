"""Masking of passwords in addresses and variables, which no text may show."""

import re
from collections.abc import Mapping

HIDDEN = "***"
# Up to the last @: a password may contain any character if it was not encoded.
_LOGIN = re.compile(r"//([^:@/]*):.*@")
_USER = re.compile(r"//[^@/]*@")
_QUERY = re.compile(r"([?&]([^=&#\s]+)=)[^&]*")
_SECRET_PARAMETER = re.compile(r"(?i)(password|passwd|pwd|username|secret|token)$")
# scaletest's own variables (SCALETEST_REDIS_URL, SCALETEST_WORKER_REDIS_URL, SCALETEST_CLIENT_TOKEN
# ...), and the one with the password of the chart. docs/how-to/workers.md lists them.
_SECRET_VARIABLE = re.compile(
    r"SCALETEST_REDIS.*|SCALETEST_(.*_)?(REDIS_URL|TOKEN|HEADERS?)|REDIS_PASSWORD"
)


def mask_passwords(address: str, *, service: bool = False) -> str:
    """Return an address, or an option that holds one, without its passwords.

    Any other text stays as it is.
    service: also hide the user name and all values of the query, which may be keys of a service.
    """
    if "//" not in address:
        return address

    def mask_parameter(match: re.Match[str]) -> str:
        is_secret = service or _SECRET_PARAMETER.search(match[2])
        return f"{match[1]}{HIDDEN}" if is_secret else match[0]

    public = _LOGIN.sub(rf"//\1:{HIDDEN}@", address)
    if service:
        public = _USER.sub(f"//{HIDDEN}@", public)
    return _QUERY.sub(mask_parameter, public)


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a program that does not belong to scaletest."""
    return {
        name: value for name, value in environment.items() if not _SECRET_VARIABLE.fullmatch(name)
    }
