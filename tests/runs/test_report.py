"""The report of a small study, opened in a browser and used as a reader uses it."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from snakemake.report import html_reporter

from tests.runs.browser import visit
from tests.runs.copies import MARKED_UP, TINY, Workflow

# What each link of the first page leads to, one after another from the first page.
FOLLOW_LINKS = """
  const errors = [];
  window.addEventListener("error", (event) => errors.push(event.message));
  const front = () => document.querySelectorAll(".prose.max-w-lg a");
  await until(() => front().length);
  const seen = [];
  for (let i = 0; i < front().length; i++) {
    const link = front()[i];
    const name = link.textContent;
    if (link.href.startsWith("http")) { seen.push([name, "elsewhere", true]); continue; }
    const before = document.body.innerHTML;
    link.click();
    await wait(300);
    const picture = [...document.querySelectorAll("#app img")].some(
      (e) => e.src.startsWith("data:image/svg") && e.naturalWidth > 99);
    const shown = {
      caption: document.body.innerText.includes("DESCRIPTION"), picture: picture,
      page: !!document.querySelector("iframe"), state: app.state.content,
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
  await click(named("Claims and provenance"));
  await click(inRow("%s", 0));
  const frame = await until(() => document.querySelector("iframe"));
  return await (await fetch(frame.src)).text();
"""


@pytest.fixture(scope="module")
def report(finished: Workflow) -> Path:
    """The report of the study that tests of runs share."""
    finished.make("--cores", "1", "--report", "report.html", default=TINY)
    return finished.root / "report.html"


class Elements(HTMLParser):
    """Collects the elements that a reader of a page sees in it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.found.append(tag)


def test_no_text_of_a_study_is_an_element_of_the_page(report: Path) -> None:
    page = report.read_text(encoding="utf-8")
    assert MARKED_UP in page
    template = Path(html_reporter.__file__).parent / "template" / "index.html.jinja2"
    elements = Elements(page).found
    assert elements.count("script") == template.read_text(encoding="utf-8").count("<script")
    assert "img" not in elements


def test_the_front_page_shows_the_study(report: Path) -> None:
    text, heads, pictures, fetched, top = visit(report, READ_FRONT)
    # Nothing of it is cut off above, where no scrolling reaches.
    assert top >= 0
    assert heads[0] == "tiny (tiny, networks that were never trained)"
    assert {"What blocks do to feature maps", "How networks are built"} < {*heads}
    assert "Images: shapes32, 10 classes." in text
    assert re.search(r"Of \d+ claims [1-9]", text)
    # Each network, the pages of the study, and each figure by what its caption is called.
    assert {"ResNet", "ViT", "Verdicts", "Feature map variance by depth"} < {*pictures}
    assert [name for name in fetched if name.startswith("http")] == []


def test_every_link_of_the_front_page_leads_somewhere(report: Path) -> None:
    seen = visit(report, FOLLOW_LINKS)
    assert len(seen) > 10
    for name, shown, without_error in seen:
        assert without_error, name
        if shown == "elsewhere":
            continue
        assert shown["changed"] or name == "Workflow", name
        if name == "Statistics":
            assert shown["state"] == "stats"
        if name == "fig9":
            assert shown["picture"]
            assert shown["caption"]
        if name == "Claims of the paper":
            assert shown["page"]


def test_the_caption_is_read(report: Path) -> None:
    text = visit(report, READ_CAPTION)
    assert "Each point is the state of the network after one block" in text
    words = " ".join(text.split())
    assert "Models: ResNet, ViT." in words
    assert "How to read it. One panel per model or, with together: true, one for all" in words
    assert "Checkpoint of ViT: " in text
    assert "*" not in text.partition("DESCRIPTION")[2].partition("SIZE")[0]


def test_claims_and_the_record_are_read(report: Path) -> None:
    claims = visit(report, READ_PAGE % "Claims of the paper")
    assert "<td>MSAs reduce the feature map variance</td>" in claims
    record = visit(report, READ_PAGE % "Record of the run")
    assert "packages:" in record
    assert "name: tiny" in record
