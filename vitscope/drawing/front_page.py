"""The front of a report as HTML: the study, what was found, claims by network, and networks.

Pictures of figures are those of the report, which its page keeps in `results`, by path.
"""

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape

from vitscope.claims.findings import Finding
from vitscope.drawing.looks import VERDICT_LOOKS

_STYLE = """\
.findings { display: grid; gap: 1.5rem;
  grid-template-columns: repeat(auto-fill, minmax(20rem, 1fr)); }
.findings a { display: block; text-decoration: none; }
.findings img { width: 100%; height: 14rem; object-fit: contain; margin: 0 0 .5rem; }
.grid { position: relative; max-width: 60rem; }
.grid img { width: 100%; margin: 0; }
.grid a { position: absolute; left: 0; right: 0; }
.grid a:hover, .grid a:focus { background: #00000014; }
.networks { display: flex; flex-wrap: wrap; gap: 1rem; align-items: end; }
.networks img { margin: 0; max-width: 100%; }
"""
GRID = "Claims by network"
_FIND = (
    "(typeof results === 'undefined' ? [] : Object.keys(results)).find((path) => "
    "path.endsWith('.svg') && results[path].labels?.result === {name} && "
    "results[path].labels.study === {study})"
)
_OPEN = (
    "javascript:void ((path) => path && app.setView({{navbarMode: 'resultinfo', resultPath: path, "
    "content: 'img', contentPath: results[path].data_uri}}))({found})"
)
# Scripts of a fragment do not run, but what an image does that fails to load. The picture of a
# figure that is not in the report goes; so do all where the fragment is opened alone.
_LOAD = (
    "this.onerror = null; const found = {found}; "
    "if (found) this.src = results[found].data_uri; else this.remove()"
)


@dataclass(frozen=True)
class Front:
    """What the front of a report shows.

    `rows` are the rows of the grid of claims: a statement, the figure that counts it, where the row
    begins and how high it is, as shares of the grid. `networks` maps texts to SVG pictures.
    """

    study: str
    title: str
    paragraphs: Iterable[str]
    findings: Iterable[Finding]
    count: str
    rows: Iterable[tuple[str, str, float, float]]
    networks: Mapping[str, bytes]

    def as_html(self) -> str:
        """Return a fragment of HTML."""
        cards = "\n".join(map(self._card, self.findings))
        rows = "\n".join(self._row(*row) for row in self.rows)
        grid = f'<div class="grid">{self._picture(GRID, GRID)}\n{rows}</div>'
        networks = "\n".join(
            f'<img alt="{escape(text)}" src="data:image/svg+xml;base64,{b64encode(svg).decode()}">'
            for text, svg in self.networks.items()
        )
        blocks = [
            f'<meta charset="utf-8">\n<style>\n{_STYLE}</style>',
            f"<h1>{escape(self.title)}</h1>",
            *(f"<p>{escape(text)}</p>" for text in self.paragraphs if text),
            f'<h2>What was found here</h2>\n<div class="findings">\n{cards}\n</div>'
            if cards
            else "",
            f"<h2>{GRID}</h2>" if rows else "",
            f"<p>{escape(self.count)}</p>",
            grid if rows else "",
            f'<h2>Networks</h2>\n<div class="networks">\n{networks}\n</div>' if networks else "",
        ]
        return "\n".join(filter(None, blocks)) + "\n"

    def _card(self, finding: Finding) -> str:
        look = VERDICT_LOOKS[finding.verdict]
        mark = f'<b style="color: {look.color}" title="{look.meaning}">{look.mark}</b>'
        picture = self._picture(finding.figure, finding.sentence)
        said = f"{mark} {escape(finding.sentence)}"
        return f'<a href="{self._link(finding.figure)}">{picture}{said}</a>'

    def _row(self, statement: str, figure: str, top: float, height: float) -> str:
        place = f"top: {top:.3%}; height: {height:.3%}"
        said = escape(f"{statement}: {figure}")
        shows = f'style="{place}" title="{said}" aria-label="{said}"'
        return f'<a href="{self._link(figure)}" {shows}></a>'

    def _picture(self, name: str, shows: str) -> str:
        load = escape(_LOAD.format(found=self._find(name)))
        return f'<img src="data:," onerror="{load}" alt="{escape(shows)}">'

    def _link(self, name: str) -> str:
        return escape(_OPEN.format(found=self._find(name)))

    def _find(self, name: str) -> str:
        return _FIND.format(name=json.dumps(name), study=json.dumps(self.study))
