import os
import re
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from PIL import Image

from tests.runs.browser import FLAGS, browser
from vitscope.measures import registry
from vitscope.package_data import ROOT

pytestmark = pytest.mark.nightly


class Links(HTMLParser):
    """What a page refers to, and what can be referred to in it."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.targets.append(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    line = [sys.executable, "-m", "sphinx", "-q", "-W", "-c", ROOT / "docs", ROOT, place]
    subprocess.run(line, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return place


def test_every_link_leads_to_a_page_and_a_place_in_it(site: Path) -> None:
    pages = {path.resolve(): Links(path) for path in site.rglob("*.html")}
    assert len(pages) > 35
    broken = []
    for page, links in pages.items():
        for target in links.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            there = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            anchor = unquote(parts.fragment)
            found = there.exists() and (
                not anchor or there not in pages or anchor in pages[there].anchors
            )
            if not found:
                broken.append((page.name, target))
    assert broken == []


def test_the_gallery_has_a_small_picture_of_every_kind(site: Path) -> None:
    text = (site / "docs" / "figures.html").read_text(encoding="utf-8")
    small = set(re.findall(r"_images/(small/\w+\.webp)", text))
    assert len(small) == len(registry.kinds())
    for name in small:
        with Image.open(site / "_images" / name) as picture:
            assert max(picture.size) <= 480
    for kind in registry.kinds():
        assert re.search(rf'href="figures/[\w-]+\.html#{kind.replace("_", "-")}"', text), kind


def test_machines_are_told_of_every_page(site: Path) -> None:
    listed = re.findall(r"^- \[.+?\]\((\S+)\): \S.+$", (site / "llms.txt").read_text(), re.M)
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert pages - {"index.html", "genindex.html", "search.html"} == {*listed}
    assert len(listed) == len(set(listed))
    assert (site / "index.html").read_bytes() == (site / "README.html").read_bytes()


def test_readers_find_pages_by_their_words(site: Path) -> None:
    address = f"{(site / 'search.html').as_uri()}?q=registers"
    with tempfile.TemporaryDirectory() as folder:
        line = [browser(), *FLAGS, f"--user-data-dir={folder}", address, "--dump-dom"]
        done = subprocess.run(line, capture_output=True, timeout=120, check=True)
    found = re.findall(
        r'<a href="([^"?]+)[^"]*"', done.stdout.decode().split('id="search-results"')[1]
    )
    assert "docs/coming-from.html" in " ".join(found)
