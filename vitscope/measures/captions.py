"""The caption of each kind of figure: the one text about it, for the report and for the manual."""

import re

from vitscope.errors import VitscopeError
from vitscope.measures import registry
from vitscope.measures.measure import FigureKind

_TITLE = re.compile(r"\*\*(.+?)\.\*\*", re.DOTALL)
_LITERAL = re.compile(r"``(.+?)``", re.DOTALL)
_LINK = re.compile(r"`([^`<]+?)\s+<([^`>]+)>`_")


def caption_of(kind: FigureKind) -> str:
    """Return what a figure of this kind shows, and how to read it, in reStructuredText."""
    return kind.text or (registry.folder(kind.measure) / kind.caption).read_text(encoding="utf-8")


def title_of(kind: FigureKind) -> str:
    """Return what a figure of this kind shows, in a few words: what its caption begins with."""
    caption = caption_of(kind)
    title = _TITLE.match(caption)
    if title is None:
        raise VitscopeError(
            f"The caption {kind.measure}/{kind.caption} begins with '{caption[:20]}', allowed: a "
            f"title, as **Title.**"
        )
    return title[1]


def in_markdown(text: str) -> str:
    """Return a caption in Markdown.

    Captions have paragraphs, lists, emphasis, literals and links; only the last two are written in
    another way.
    """
    return _LINK.sub(r"[\1](\2)", _LITERAL.sub(r"`\1`", text))
