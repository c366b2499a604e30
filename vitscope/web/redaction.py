"""Web addresses as logs, records and figures show them: without passwords and tokens."""

import re
from hashlib import sha256

DIGITS = 8
_USER = re.compile(r"(?<=//)[^/?#]*@")
_HIDDEN = re.compile(rf"~[0-9a-f]{{{DIGITS}}}")


def redact(address: str) -> str:
    """Return an address without user, password and values of its query.

    Each value is replaced by the start of its digest, so that addresses that differ stay different.
    """
    place, mark, query = _USER.sub("", address.partition("#")[0]).partition("?")
    return place + mark + "&".join(map(_hidden, query.split("&")))


def _hidden(part: str) -> str:
    name, equals, value = part.rpartition("=")
    if not value or _HIDDEN.fullmatch(value):
        return part
    return f"{name}{equals}~{sha256(value.encode()).hexdigest()[:DIGITS]}"
