import re
from html import escape
from html.parser import HTMLParser

import pytest
from docutils.core import publish_parts

from vitscope.files.pages import (
    Section,
    as_inert,
    as_rst,
    page_as_html,
    page_as_latex,
    page_as_markdown,
    text_as_html,
)

SECTIONS = [
    Section("One", "", ("a", "b"), [("1", "2"), ("x|y", "<b>&\nz")]),
    Section("Two", "How to read it.", ("c",), [("3",)]),
]

MARKDOWN = """\
# Title

What it is.

## One

| a | b |
| --- | --- |
| 1 | 2 |
| x\\|y | &lt;b&gt;&amp; z |

## Two

How to read it.

| c |
| --- |
| 3 |
"""


class Reader(HTMLParser):
    """Collects the text of each element and checks that elements are closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self.open[-1], data))


def test_markdown() -> None:
    assert page_as_markdown("Title", "What it is.", SECTIONS) == MARKDOWN


def test_latex_says_the_same() -> None:
    text = page_as_latex("Title", SECTIONS)
    assert text.count(r"\begin{longtable}") == text.count(r"\end{longtable}") == len(SECTIONS)
    rows = [line.removesuffix(r" \\").split(" & ") for line in text.splitlines() if " & " in line]
    assert rows[1:] == [["1", "2"], ["x|y", r"$<$b$>$\& z"]]
    assert rows[0][0].endswith(r"\toprule a")
    signs = page_as_latex("", [Section(r"50 % of {a_b} \ #1", "", ("c",), [])])
    assert r"\caption{50 \% of \{a\_b\} \textbackslash{} \#1}" in signs


def test_html_says_the_same() -> None:
    reader = Reader(page_as_html("Title", "What it is.", SECTIONS))
    assert reader.open == []
    said = [text for tag, text in reader.texts if tag != "style"]
    words = ["Title", "Title", "What it is.", "One", "a", "b", "1", "2", "x|y", "<b>&\nz"]
    assert said == [*words, "Two", "How to read it.", "c", "3"]
    assert {tag for tag, _ in reader.texts} >= {"title", "h1", "h2", "p", "th", "td"}


def test_a_text_is_shown_as_it_is() -> None:
    text = "key: '<script>alert(1)</script>'\n  - ä & ö\n"
    reader = Reader(text_as_html("<Title>", text))
    assert ("h1", "<Title>") in reader.texts
    assert ("pre", text) in reader.texts
    assert "script" not in {tag for tag, _ in reader.texts}


@pytest.mark.parametrize(
    "text",
    [
        *(
            "</script><script>a</script>",
            "<!--<script>",
            ".. raw:: html",
            ".. include:: /etc/passwd",
        ),
        *("- .. image:: https://host/a.png", "`a <javascript:a>`_", "javascript:a", "*a* b_ |c|"),
        *(
            "__ javascript:a",
            "====",
            ">>> a",
            ":a: b",
            "1. a",
            r"\\d",
            "::",
            "+--+",
            "a {{ 7 * 7 }}",
        ),
    ],
)
def test_any_text_is_nothing_but_text_in_a_report(text: str) -> None:
    settings = {"halt_level": 2, "report_level": 2}
    made = publish_parts(f"before\n\n{as_rst(text)}", writer="html", settings_overrides=settings)
    assert re.findall(r"<p>(.*?)</p>", made["body"]) == ["before", escape(text, quote=False)]
    assert as_inert(text).replace("\u2060", "") == text
    # Neither an element nor the end or a comment of a script, and no wildcard of Snakemake.
    assert not re.search(r"[<{]\w|</|<!|\{\{", as_inert(text))
