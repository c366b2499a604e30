"""The web: addresses as logs, records and figures show them, without passwords and tokens."""

import re
from hashlib import sha256

DIGITS = 8
_USER = re.compile(r"(?<=//)[^/?#]*@")
# In a path, the text after a parameter's sign, plain or escaped, and the text before an @.
_PARAMETERS = re.compile(r"([;=&]|%3[bd]|%26)[^/]+|[^/]+(?=@)", re.IGNORECASE)
_PLAIN_NAME = re.compile(r"[A-Za-z_.-]{1,32}")


def redact(address: str) -> str:
    """Return an address with a digest in place of each secret: user, parameters, query values."""
    place, mark, query = _USER.sub("", address.partition("#")[0]).partition("?")
    place = _PARAMETERS.sub(lambda found: (found[1] or "") + _digest(found[0]), place)
    return place + mark + "".join(map(_hidden, re.split(r"([&;])", query)))


def _hidden(part: str) -> str:
    """Hide the value in a part of a query, and its name if that may itself be a token."""
    if part in {"", "&", ";"}:
        return part
    name, _, value = part.partition("=")
    # A part that ends in `=` may be nothing but a token.
    shown = _PLAIN_NAME.fullmatch(name) and value.strip("=")
    return f"{name}={_digest(value)}" if shown else _digest(part)


def _digest(value: str) -> str:
    return f"~{sha256(value.encode()).hexdigest()[:DIGITS]}"
