"""Errors that a user can cause, each explained in one sentence."""

from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

LONGEST = 2000


class VitscopeError(Exception):
    """An error that the user can correct; its text is one sentence that says how.

    The sentence may quote the content of a file, so unprintable characters are escaped, and a text
    longer than `LONGEST` characters is shortened in the middle.
    """

    def __init__(self, sentence: str) -> None:
        text, half = visible(sentence), LONGEST // 2
        super().__init__(text if len(text) <= LONGEST else f"{text[:half]} ... {text[-half:]}")


def visible(text: str) -> str:
    """Return a text with line ends and other unprintable characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def nearest(found: str, allowed: Iterable[str]) -> str:
    """Return the allowed name closest to `found`, as a question to end a message, or ''."""
    close = get_close_matches(str(found), list(allowed), n=1, cutoff=0.5)
    return f" Did you mean '{close[0]}'?" if close else ""


def first_of(names: Sequence[str], shown: int) -> str:
    """Return the first `shown` names for a message, and how many more there are."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def quoted(value: object) -> str:
    """Return a value as a message quotes it: on one line, in at most 60 characters."""
    words = {None: "nothing", True: "true", False: "false"}
    text = words[value] if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def wrong(where: object, key: str, found: object, allowed: str) -> VitscopeError:
    """Return the error for a wrong value of a key; `allowed` ends the sentence."""
    return VitscopeError(f"{where}: {key}: found {quoted(found)}, allowed: {allowed}")


def unknown(where: object, key: str, found: object, allowed: Iterable[str]) -> VitscopeError:
    """Return the error for a value that is not among the allowed ones."""
    allowed = list(allowed)
    return VitscopeError(
        f"{where}: {key}: found {quoted(found)}, allowed: {listed(allowed)}."
        f"{nearest(str(found), allowed)}"
    )


def check_known(where: object, key: str, found: object, allowed: Collection[str]) -> None:
    """Refuse a value that is not among the allowed ones."""
    if found not in allowed:
        raise unknown(where, key, found, allowed)


def not_there(where: str, what: str, path: Path, study: Path) -> VitscopeError:
    """Return the error for a file that a study names but that does not exist.

    Such paths are relative to the working directory; if the file is beside the study instead, the
    sentence says so.
    """
    beside = study.absolute().parent / path
    found = ""
    if beside.exists():
        found = f"{beside} is there, but the path starts at the working directory: "
    return VitscopeError(
        f"{where}: there is no {what} {path.absolute()}: {found}put one there or correct the path."
    )


def listed(names: Iterable[str]) -> str:
    """Return names in alphabetical order, for a message; 'nothing' if there are none."""
    return ", ".join(sorted(names)) or "nothing"


def error_sentence_of(action: Callable[[], object]) -> str | None:
    """Run an action; return the error sentence if it is refused, or None."""
    try:
        action()
    except VitscopeError as error:
        return str(error)
    return None
