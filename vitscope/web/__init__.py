"""Web addresses: hide passwords and tokens before logs, records and figures show an address."""

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

DIGITS = 8
_USER = re.compile(r"(?<=//)[^/?#]*@")
# In a path: text after a sign of parameters (; = &), plain or escaped, or text before an @.
_PARAMETERS = re.compile(r"([;=&]|%3[bd]|%26)[^/]+|[^/]+(?=@)", re.IGNORECASE)
_PLAIN_NAME = re.compile(r"[A-Za-z_.-]{1,32}")


def redact(address: str) -> str:
    """Return an address without its user, with digests in place of parameters and query values."""
    place, mark, query = _USER.sub("", address.partition("#")[0]).partition("?")
    place = _PARAMETERS.sub(lambda found: (found[1] or "") + _secret_digest(found[0]), place)
    return place + mark + "".join(map(_redact_part_of_web_query, re.split(r"([&;])", query)))


def without_secrets(settings: Any) -> Any:
    """Return settings with every address in them, the values of `url`, redacted."""
    if isinstance(settings, Mapping):
        return {
            key: redact(value)
            if key == "url" and isinstance(value, str)
            else without_secrets(value)
            for key, value in settings.items()
        }
    if isinstance(settings, list | tuple):
        return type(settings)(map(without_secrets, settings))
    return settings


def _redact_part_of_web_query(part: str) -> str:
    """Hide the value in a part of a query, and also the name if that may be a token."""
    if part in {"", "&", ";"}:
        return part
    name, _, value = part.partition("=")
    # Without a value, the whole part may be a token, which may end in `=`.
    shown = _PLAIN_NAME.fullmatch(name) and value.strip("=")
    return f"{name}={_secret_digest(value)}" if shown else _secret_digest(part)


def _secret_digest(value: str) -> str:
    return f"~{sha256(value.encode()).hexdigest()[:DIGITS]}"
