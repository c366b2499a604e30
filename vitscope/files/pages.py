"""Results in words: write sections of text and tables as Markdown, HTML or LaTeX."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

_STYLE = """\
body { font: 15px/1.5 system-ui, sans-serif; color: #1e293b; max-width: 60em; margin: 2em auto; }
table { border-collapse: collapse; width: 100%; margin: 1em 0; }
th, td { text-align: left; padding: .3em .8em; border-bottom: 1px solid #cbd5e1; }
pre { font-size: 13px; white-space: pre-wrap; }
"""
# Replacements of characters with a meaning in LaTeX, and of signs that some of its fonts lack.
_LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"–": "--", "×": r"$\times$", "π": r"$\pi$", "Δ": r"$\Delta$", "<": "$<$", ">": "$>$"}
)
# Punctuation, any of which may begin markup of reStructuredText.
_MARKUP = re.compile(r"[!-/:-@\[-`{-~]")
# A character without width, U+2060.
_JOINER = "\u2060"


def as_inert(text: str) -> str:
    """Return a text on one line that looks the same and is nothing but text to a reader of a page.

    Snakemake writes texts into scripts, templates and elements of its report as they are. A joiner
    after each `<` and `{` keeps these from beginning an element, a script's end or a wildcard.
    """
    return re.sub(r"([<{])", rf"\1{_JOINER}", " ".join(text.split()))


def as_rst(text: str) -> str:
    """Return paragraphs of text as reStructuredText that shows them, without any markup."""
    lines = (_MARKUP.sub(r"\\\g<0>", line.strip()) for line in text.splitlines())
    return "\n".join(lines)


@dataclass(frozen=True)
class Section:
    """A table of text under a heading, with a paragraph that says how to read it."""

    heading: str
    text: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def page_as_markdown(title: str, text: str, sections: Iterable[Section]) -> str:
    blocks = [f"# {_escape_markdown(title)}", _escape_markdown(text)]
    for section in sections:
        cells = (section.header, ["---"] * len(section.header), *section.rows)
        lines = ([_escape_markdown(cell).replace("|", r"\|") for cell in row] for row in cells)
        rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        blocks += [f"## {_escape_markdown(section.heading)}", _escape_markdown(section.text), rows]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _escape_markdown(text: str) -> str:
    """Return a text on one line, with `<`, `>` and `&` escaped, as Markdown may contain HTML."""
    return escape(" ".join(text.splitlines()), quote=False)


def page_as_html(title: str, text: str, sections: Iterable[Section]) -> str:
    """Return a title, a paragraph and sections as a self-contained page."""
    blocks = [f"<p>{escape(text)}</p>"]
    for section in sections:
        head, *rows = (
            "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells)
            for tag, cells in [("th", section.header), *(("td", row) for row in section.rows)]
        )
        body = "\n".join(f"<tr>{row}</tr>" for row in rows)
        blocks.append(f"<h2>{escape(section.heading)}</h2>")
        blocks.append(f"<p>{escape(section.text)}</p>" if section.text else "")
        blocks.append(f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>")
    return html_page(title, "\n".join(block for block in blocks if block))


def page_as_latex(title: str, sections: Iterable[Section]) -> str:
    """Return sections as LaTeX tables, which need the packages array, booktabs and longtable."""
    lines = [f"% {title}"]
    for section in sections:
        width = f"{0.9 / len(section.header):.2f}"
        column = rf">{{\raggedright\arraybackslash}}p{{{width}\linewidth}}"
        head, *rows = (
            " & ".join(map(_escape_latex, row)) for row in (section.header, *section.rows)
        )
        lines += [
            rf"\begin{{longtable}}{{*{{{len(section.header)}}}{{{column}}}}}",
            rf"\caption{{{_escape_latex(section.heading)}}}\\",
            rf"\toprule {head} \\ \midrule \endhead \bottomrule \endfoot",
            *(rf"{row} \\" for row in rows),
            r"\end{longtable}",
        ]
    return "\n".join(lines) + "\n"


def _escape_latex(text: str) -> str:
    return " ".join(text.splitlines()).translate(_LATEX)


def text_as_html(title: str, text: str) -> str:
    """Return a text, with its line breaks, as a self-contained page."""
    return html_page(title, f"<pre>{escape(text)}</pre>")


def html_page(title: str, body: str) -> str:
    """Return a self-contained page with a title above a `body` of HTML."""
    head = f'<meta charset="utf-8">\n<title>{escape(title)}</title>\n<style>\n{_STYLE}</style>'
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n'
        f"<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )
