"""The web: addresses as logs, records and figures show them, without passwords and tokens."""

import re
from hashlib import sha256

DIGITS = 8
_USER = re.compile(r"(?<=//)[^/?#]*@")
# In a path, what follows the sign of a parameter, as it is or escaped, and what stands before an @.
_PARAMETERS = re.compile(r"([;=&]|%3[bd]|%26)[^/]+|[^/]+(?=@)", re.IGNORECASE)
_PLAIN_NAME = re.compile(r"[A-Za-z_.-]{1,32}")


def redact(address: str) -> str:
    """Return an address without user, password, parameters of its path and values of its query.

    Each value is replaced by the start of its digest, so that addresses that differ stay different.
    """
    place, mark, query = _USER.sub("", address.partition("#")[0]).partition("?")
    place = _PARAMETERS.sub(lambda found: (found[1] or "") + _digest(found[0]), place)
    return place + mark + "".join(map(_hidden, re.split(r"([&;])", query)))


def _hidden(part: str) -> str:
    """Return a part of a query without its value, and without a name that may be a token itself."""
    if part in {"", "&", ";"}:
        return part
    name, _, value = part.partition("=")
    # What ends in `=` may be a token alone.
    shown = _PLAIN_NAME.fullmatch(name) and value.strip("=")
    return f"{name}={_digest(value)}" if shown else _digest(part)


def _digest(value: str) -> str:
    return f"~{sha256(value.encode()).hexdigest()[:DIGITS]}"
