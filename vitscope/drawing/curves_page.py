"""An HTML page of curves by depth, which works offline and shows the values under the pointer."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd

from vitscope.drawing.counts import say_count
from vitscope.drawing.figure import Member, rows_of
from vitscope.drawing.looks import LABELS_OF_KINDS, Look, look_of, looks_of
from vitscope.files.pages import html_page

# How many models are switched on at first.
_AT_FIRST = 3
_TEXT = (
    "Point at a curve, or walk along curves with the arrow keys: a block, its value, and the 95 % "
    "interval over images, which is the shade. Filled points follow an MSA. Across: normalized "
    "depth. Each scale is that of the models that are shown."
)
_STYLE = """\
body { padding: 0 1em; }
svg.curves { width: 100%; touch-action: pan-y; font-size: 11px; }
.curves text { fill: #595959; text-anchor: middle; }
.curves path { stroke: #e4e4e4; }
.curves polygon { stroke: none; opacity: .18; }
.curves polyline { fill: none; stroke-width: 1.3; }
.curves g.near polyline { stroke-width: 2.6; }
.curves circle { fill: white; stroke-width: 1.2; }
.curves circle.msa { fill: inherit; }
.curves circle.near { stroke-width: 5; }
p.n { margin: -.6em 0 0; color: #595959; }
#models { position: sticky; top: 0; background: white; padding: .4em 0; }
#models label { display: inline-block; margin-right: 1em; border-bottom: 3px solid; }
#note { position: fixed; left: 0; top: 0; margin: 0; padding: .1em .5em; max-width: 90%;
  background: white; border: 1px solid #595959; pointer-events: none; }
"""
_SCRIPT = """\
const {models, curves} = JSON.parse(document.querySelector("#data").textContent);
const find = (selector, within = document) => [...within.querySelectorAll(selector)];
const plots = find(".curves"), boxes = find("input"), [note] = find("#note"), height = 230;
const add = (parent, tag, set, textContent = "") => {
  const made = parent.appendChild(document.createElementNS("http://www.w3.org/2000/svg", tag));
  for (const pair of Object.entries(set)) made.setAttribute(...pair);
  return Object.assign(made, {textContent});
};
const draw = (svg, points) => {
  svg.replaceChildren();
  const shown = models.filter(({name}, at) => points[name] && boxes[at].checked);
  const of = shown.flatMap(({name}) => points[name].flatMap((p) => [p.value, p.low, p.high]));
  const known = of.filter((value) => value !== null);
  const low = Math.min(...known), range = Math.max(...known) - low || 1;
  const x = (depth) => 56 + depth * 652;
  const y = (value) => height - 22 - (value - low) / range * (height - 30);
  const ten = 10 ** Math.floor(Math.log10(range / 6));
  const step = ten * [1, 2, 5, 10].find((times) => times * ten >= range / 6);
  for (let at = Math.ceil(low / step); known.length && at * step <= low + range; at++) {
    add(svg, "path", {d: `M56,${y(at * step)}H708`});
    add(svg, "text", {x: 28, y: y(at * step) + 4}, Number((at * step).toPrecision(4)));
  }
  for (const at of [0, 0.25, 0.5, 0.75, 1]) add(svg, "text", {x: x(at), y: height - 4}, at);
  for (const {name, color, dashes} of shown) {
    const group = add(svg, "g", {stroke: color, fill: color});
    const line = (key) => points[name].filter((p) => p[key] !== null)
      .map((p) => [x(p.depth), y(p[key])]);
    add(group, "polygon", {points: [...line("low"), ...line("high").reverse()]});
    add(group, "polyline", {points: line("value"), "stroke-dasharray": dashes});
    for (const {depth, value, msa, said} of points[name]) add(group, "circle", {cx: x(depth),
      cy: y(value), r: 3, class: msa ? "msa" : "", role: "img", "aria-label": said});
  }
};
const show = (svg, circle) => {
  for (const each of find(".near", svg)) each.classList.remove("near");
  if (note.hidden = !circle) return;
  for (const each of [circle, circle.parentNode]) each.classList.add("near");
  const {x, bottom} = circle.getBoundingClientRect();
  note.textContent = circle.getAttribute("aria-label");
  note.style.translate = `${Math.min(x, innerWidth - note.offsetWidth - 20)}px ${bottom + 8}px`;
};
for (const svg of plots) {
  svg.onpointermove = svg.onpointerdown = ({clientX, clientY}) => {
    const far = ({x, y, width}) => Math.hypot(x + width / 2 - clientX, y + width / 2 - clientY);
    const found = find("circle", svg).map((each) => [far(each.getBoundingClientRect()), each]);
    show(svg, found.filter(([far]) => far < 30).sort((a, b) => a[0] - b[0])[0]?.[1]);
  };
  svg.onpointerleave = svg.onblur = () => show(svg);
  svg.onkeydown = ({key}) => {
    const all = find("circle", svg), at = all.findIndex((each) => each.matches(".near"));
    show(svg, {ArrowLeft: all.at(Math.max(at, 0) - 1), ArrowRight: all[at + 1] ?? all[0]}[key]);
  };
}
const redraw = () => plots.forEach((svg, at) => draw(svg, curves[at]));
document.querySelector("#models").onchange = redraw;
document.querySelector("button").onclick = () => {
  for (const box of boxes) box.checked = !box.checked;
  redraw();
};
redraw();
"""


def page_of_curves(
    title: str, members: Sequence[Member], curves: Mapping[str, pd.DataFrame]
) -> str:
    """Return the page; `curves` maps a label to a table with `depth`, `value`, `low` and `high`."""
    looks = dict(zip(members, _looks_on_page(members), strict=True))
    first = _shown_at_first(members)
    shown = {
        "models": [
            {"name": member.model, "color": look.color, "dashes": _svg_dashes(look)}
            for member, look in looks.items()
        ],
        "curves": [
            {member.model: _curve_for_page(table, member) for member in _members_in(table, members)}
            for table in curves.values()
        ],
    }
    boxes = "\n".join(
        f'<label style="border-color: {look.color}"><input type="checkbox"'
        f"{' checked' * (member in first)}> {escape(member.label)}</label>"
        for member, look in looks.items()
    )
    plots = "\n".join(
        f'<h2 id="curve{number}">{escape(label)}</h2>\n{_note_of_count(table)}'
        f'<svg class="curves" tabindex="0" role="group" aria-labelledby="curve{number}" '
        f'viewBox="0 0 720 230"></svg>'
        for number, (label, table) in enumerate(curves.items())
    )
    # Escape `<`, so that no text from a study can close the `<script>` element.
    data = json.dumps(shown).replace("<", r"\u003c")
    return html_page(
        title,
        f'<style>\n{_STYLE}</style>\n<p>{_TEXT}</p>\n<p id="models">\n{boxes}\n'
        f'<button>switch all</button></p>\n{plots}\n<p id="note" role="status" hidden></p>\n'
        f'<script type="application/json" id="data">{data}</script>\n'
        f"<script>\n{_SCRIPT}</script>",
    )


def _looks_on_page(members: Sequence[Member]) -> list[Look]:
    """Return looks that differ; the first model of a family looks as it does in figures."""
    looks = list(map(look_of, members))
    varied = zip(looks, looks_of(members), strict=True)
    return [own if own not in looks[:at] else look for at, (own, look) in enumerate(varied)]


def _shown_at_first(members: Sequence[Member]) -> list[Member]:
    """Return the first models of three families or, where there are fewer, three models."""
    families = [member.family for member in members]
    ahead = [each for at, each in enumerate(members) if families[at] not in families[:at]]
    return [*ahead, *(each for each in members if each not in ahead)][:_AT_FIRST]


def _note_of_count(table: pd.DataFrame) -> str:
    """Return on how many images curves were measured, as a paragraph; empty if that is unknown."""
    said = say_count(table)
    return f'<p class="n">Measured on {said}.</p>\n' if said else ""


def _svg_dashes(look: Look) -> str:
    return "" if look.dashes == "-" else " ".join(f"{1.5 * each:g}" for each in look.dashes[1])


def _members_in(table: pd.DataFrame, members: Sequence[Member]) -> list[Member]:
    return [member for member in members if member.model in {*table["model"]}]


def _curve_for_page(table: pd.DataFrame, member: Member) -> list[dict[str, Any]]:
    rows = rows_of(table.dropna(subset="value"), member.model, ["index"])
    points = rows[["depth", "value", "low", "high"]].assign(
        msa=rows["kind"].isin(["msa", "parallel"]),
        said=[
            f"{member.label}, {name} ({LABELS_OF_KINDS.get(kind, kind)}): {value:.4g}"
            + ("" if pd.isna(low) else f" ({low:.4g} to {high:.4g})")
            for name, kind, value, low, high in rows[
                ["name", "kind", "value", "low", "high"]
            ].itertuples(index=False)
        ],
    )
    found: list[dict[str, Any]] = json.loads(points.to_json(orient="records", double_precision=15))
    return found
