"""The report of the last run of the default study, opened in a browser."""

import os
from pathlib import Path

import pytest

from tests.runs.browser import browser, visit
from vitscope.package_data import ROOT

pytestmark = pytest.mark.last_run

READ_CAPTION = """
  await click(named("Figures"));
  await click(inRow("fig9", 1));
  await until(() => document.body.innerText.includes("DESCRIPTION"));
  return document.body.innerText;
"""
READ_FRONT = """
  await until(() => document.body.innerText.includes("vitscope"));
  await wait(500);
  const fetched = performance.getEntriesByType("resource").map((r) => r.name);
  return [document.body.innerText, fetched];
"""
READ_PAGE = """
  await click(named("Claims and provenance"));
  await click(inRow("%s", 0));
  const frame = await until(() => document.querySelector("iframe"));
  return await (await fetch(frame.src)).text();
"""


@pytest.fixture(scope="module")
def report() -> Path:
    """The report of the last run of the default study."""
    browser()
    path = Path(os.environ.get("VITSCOPE_REPORT", ROOT / "report.html"))
    assert path.is_file(), f"{path} is missing: run `snakemake --report report.html` first."
    return path


def test_the_caption_is_read(report: Path) -> None:
    text = visit(report, READ_CAPTION)
    assert "Each point is the state of the network after one block" in text
    assert "Models: ResNet, ViT." in " ".join(text.split())
    assert "How to read it. One panel per model. A band reaches" in " ".join(text.split())
    assert "Checkpoint of ViT: resources/checkpoints/mini/vit/end.safetensors" in text
    assert "*" not in text.partition("DESCRIPTION")[2].partition("SIZE")[0]


def test_claims_and_the_record_are_read(report: Path) -> None:
    claims = visit(report, READ_PAGE % "Claims of the paper")
    assert "<td>MSAs reduce the feature map variance</td>" in claims
    record = visit(report, READ_PAGE % "Record of the run")
    assert "packages:" in record
    assert "name: mini" in record


def test_the_front_page_is_all_that_is_fetched(report: Path) -> None:
    text, fetched = visit(report, READ_FRONT)
    assert "How Do Vision Transformers Work?" in text
    assert "The default study is mini." in text
    assert [name for name in fetched if name.startswith("http")] == []
