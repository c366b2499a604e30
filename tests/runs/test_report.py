import re
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from snakemake.report import html_reporter

from tests.runs.browser import visit
from tests.runs.copies import MARKED_UP, TINY, Workflow

CURVES = f"results/{TINY}/curves.html"

# What each link of the first page leads to, one after another from the first page.
FOLLOW_LINKS = """
  const errors = [];
  window.addEventListener("error", (event) => errors.push(event.message));
  const front = () => document.querySelectorAll(".prose.max-w-lg a");
  await until(() => front().length);
  const seen = [];
  for (let i = 0; i < front().length; i++) {
    const link = front()[i];
    const name = link.textContent || link.ariaLabel;
    if (link.href.startsWith("http")) { seen.push([name, "elsewhere", true]); continue; }
    const before = document.body.innerHTML;
    link.click();
    const waiting = () => front().length ||
      [...document.querySelectorAll("#app img")].some((e) => !e.complete);
    for (let n = 0; n < 10 && waiting(); n++) await wait(50);
    await wait(50);
    const picture = [...document.querySelectorAll("#app img")].some(
      (e) => e.src.startsWith("data:image/svg") && e.naturalWidth > 99);
    const shown = {
      caption: document.body.innerText.includes("DESCRIPTION"), picture: picture,
      page: !!document.querySelector("iframe"), state: app.state.content,
      graph: document.querySelector("#rulegraph canvas")?.getBoundingClientRect().top,
      changed: document.body.innerHTML !== before };
    seen.push([name, shown, errors.splice(0).length === 0]);
    app.setView({navbarMode: "menu", content: "rulegraph"});
    await until(() => front().length);
  }
  return seen;
"""
READ_CAPTION = """
  await click(named("Figures"));
  await click(named("What blocks do to feature maps"));
  await click(inRow("Feature map variance by depth", 1));
  await until(() => document.body.innerText.includes("DESCRIPTION"));
  return document.body.innerText;
"""
READ_FRONT = """
  await until(() => document.body.innerText.includes("Figures of"));
  await wait(500);
  const front = document.querySelector(".prose.max-w-lg");
  const pictures = [...front.querySelectorAll("img")].filter((e) => e.naturalWidth > 99);
  const fetched = performance.getEntriesByType("resource").map((r) => r.name);
  const heads = [...front.querySelectorAll("h1, h2, h3")].map((e) => e.textContent);
  const top = front.querySelector("h1").getBoundingClientRect().top;
  return [front.innerText, heads, pictures.map((e) => e.alt), fetched, top];
"""
READ_PAGE = """
  await click(named("%s"));
  await click(inRow("%s", 0));
  const frame = await until(() => document.querySelector("iframe"));
  return await (await fetch(frame.src)).text();
"""
# What a reader sees who points beside a point, walks on by keys, and switches models.
POINT = """
  const svg = document.querySelector("svg.curves"), note = document.querySelector("#note");
  const count = (tag) => svg.querySelectorAll(tag).length;
  const press = (key) => svg.dispatchEvent(new KeyboardEvent("keydown", {key}));
  const move = (clientX, clientY) =>
    svg.dispatchEvent(new PointerEvent("pointermove", {clientX, clientY}));
  const seen = {before: note.hidden, models: count("g")};
  const {x, y, right, bottom} = svg.querySelectorAll("circle")[2].getBoundingClientRect();
  move((x + right) / 2 + 3, (y + bottom) / 2 - 3);
  const box = note.getBoundingClientRect();
  seen.said = note.textContent;
  seen.inside = !note.hidden && box.left >= 0 && box.right <= innerWidth && box.top > bottom;
  press("ArrowRight");
  seen.next = note.textContent;
  move(0, 0);
  seen.away = note.hidden;
  document.querySelectorAll("#models input")[1].click();
  seen.alone = [count("g"), note.hidden];
  document.querySelector("button").click();
  seen.switched = [count("g"), svg.querySelector("circle").ariaLabel];
  seen.fetched = performance.getEntriesByType("resource").length;
  return seen;
"""


@pytest.fixture(scope="module")
def report(finished: Workflow) -> Path:
    """The report of the study that tests of runs share, with curves that can be pointed at."""
    targets = ("all", CURVES)
    finished.make("--cores", "1", *targets, default=TINY)
    finished.make(*targets, "--report", "report.html", default=TINY)
    return finished.root / "report.html"


def test_no_text_of_a_study_is_an_element_of_the_page(report: Path) -> None:
    page = report.read_text(encoding="utf-8")
    assert escape(MARKED_UP) in page
    template = Path(html_reporter.__file__).parent / "template" / "index.html.jinja2"
    elements, parser = [], HTMLParser()
    parser.handle_starttag = lambda tag, _: elements.append(tag)
    parser.feed(page)
    parser.close()
    assert elements.count("script") == template.read_text(encoding="utf-8").count("<script")
    assert "img" not in elements


def test_the_front_page_shows_the_study(report: Path) -> None:
    text, heads, pictures, fetched, top = visit(report, READ_FRONT)
    # Nothing of it is cut off above, where no scrolling reaches.
    assert top >= 0
    assert heads[0] == "tiny (tiny, networks that were never trained)"
    assert heads[1:4] == ["What was found here", "Claims by network", "Networks"]
    assert {"What blocks do to feature maps", "How networks are built"} < {*heads}
    assert "Images: shapes32, 10 classes." in text
    assert re.search(r"\d+ claims: [1-9]", text)
    # Each network, the pages of the study, and each figure by what its caption is called.
    assert {
        "Blocks of ResNet, and their multiply-adds",
        "Blocks of ViT, and their multiply-adds",
        "Paper against measured. The figures of the paper that have published points, beside what "
        "this study measures",
        "Feature map variance by depth",
    } < {*pictures}
    assert all(len(alt) > 9 for alt in pictures)
    # A finding of each question stands below its picture, and the grid of claims is there.
    found = [alt for alt in pictures if re.search(r": (holds|fails|is open) for ", alt)]
    assert len(found) == 2
    assert all(each in text for each in found)
    assert "Claims by network" in pictures
    # Nobody reads how jobs are called.
    assert not re.search(r"[{\[]['\"]", text)
    assert [name for name in fetched if name.startswith("http")] == []


def test_every_link_of_the_front_page_leads_somewhere(report: Path) -> None:
    seen = visit(report, FOLLOW_LINKS)
    assert len(seen) > 10
    # The findings, and a row of the grid for each claim.
    assert len([name for name, *_ in seen if " for " in name]) == 2
    assert len([name for name, *_ in seen if name.endswith(": fig9")]) > 2
    for name, shown, without_error in seen:
        assert without_error, name
        if shown == "elsewhere":
            continue
        assert shown["changed"] or name == "Workflow", name
        if name == "Workflow":
            # A graph that is in the window.
            assert shown["graph"] is not None
            assert -1 < shown["graph"] < 600
        if name == "walk":
            assert shown["state"] == "img"
        if name == "Statistics":
            assert shown["state"] == "stats"
        if name == "fig9" or name.endswith(": fig9") or " for " in name:
            assert shown["picture"], name
            assert shown["caption"], name
        if name in ("Claims of the paper", "Curves by depth"):
            assert shown["page"]


def test_a_report_of_one_figure_says_nothing_of_errors(finished: Workflow) -> None:
    figure = f"figures/{TINY}/fig9.pdf"
    finished.make("--cores", "1", figure, default=TINY)
    output = finished.make(figure, "--report", "one.html", default=TINY)
    assert "ERROR/3" not in output


def test_the_caption_is_read(report: Path) -> None:
    text = visit(report, READ_CAPTION)
    assert "Each point is the state of the network after one block" in text
    words = " ".join(text.split())
    assert "Models: ResNet, ViT." in words
    assert "How to read it. One panel per model or, with together: true, one for all" in words
    assert "Checkpoint of ViT: " in text
    assert "*" not in text.partition("DESCRIPTION")[2].partition("SIZE")[0]


def test_claims_and_the_record_are_read(report: Path) -> None:
    claims = visit(report, READ_PAGE % ("Claims and provenance", "Claims of the paper"))
    assert "<td>MSAs reduce the feature map variance</td>" in claims
    record = visit(report, READ_PAGE % ("Claims and provenance", "Record of the run"))
    assert "packages:" in record
    assert "name: tiny" in record


def test_curves_are_pointed_at_and_models_switched(report: Path) -> None:
    page = report.parent / CURVES
    shown = visit(report, READ_PAGE % ("Networks", "Curves by depth"))
    assert shown == page.read_text(encoding="utf-8")
    rows = pd.read_parquet(report.parent / f"results/{TINY}/tables/feature_variance.parquet")
    of_resnet = rows[rows["model"] == "resnet"].sort_values("index", ignore_index=True)

    def said(index: int) -> str:
        row = of_resnet.loc[index]
        value, *ends = (f"{row[key]:.4g}" for key in ("variance", "ci_low", "ci_high"))
        return f"ResNet, {row['name']} ({row['kind']}): {value} ({ends[0]} to {ends[1]})"

    seen = visit(page, POINT)
    assert seen == {
        "before": True,
        "models": 2,
        "said": said(2),
        "inside": True,
        "next": said(3),
        "away": True,
        "alone": [1, True],
        # The other model, which alone is on when all are switched.
        "switched": [1, seen["switched"][1]],
        "fetched": 0,
    }
    assert seen["switched"][1].startswith("ViT, ")
