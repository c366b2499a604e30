"""Errors that a user can cause, each told in one sentence."""

from collections.abc import Iterable
from difflib import get_close_matches


class VitscopeError(Exception):
    """Something the user can put right; its text is one sentence that says how."""


def nearest(found: str, allowed: Iterable[str]) -> str:
    """Return a suggestion to append to a message, empty when nothing is close."""
    close = get_close_matches(str(found), list(allowed), n=1, cutoff=0.5)
    return f" Did you mean '{close[0]}'?" if close else ""
