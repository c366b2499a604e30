"""The site: the pages of this repository.

Its source is the whole repository, so that a link leads to the same place here and in a clone.
"""

import re
import shutil
from pathlib import Path

from docutils import nodes
from PIL import Image
from sphinx.application import Sphinx

project = html_title = "vitscope"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "config/README.md", "notebooks/README.md"]
include_patterns += ["vitscope/claims/published_points/README.md"]
include_patterns += ["packages/vitscope-scans/README.md"]
exclude_patterns = [".*", "site", "results", "figures", "data", "tests", "build"]
html_theme = "furo"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
highlight_language = "none"
myst_heading_anchors = 4
myst_enable_extensions = ["html_image"]

CHAPTERS = {
    "Begin": ["docs/installation", "docs/coming-from", "notebooks/README", "docs/python"],
    "Figures": ["docs/figures", "docs/figures/*"],
    "The paper": ["docs/paper", "docs/claims", "vitscope/claims/published_points/README"],
    "Studies": [
        "docs/studies",
        "config/README",
        "docs/tables",
        "docs/data",
        "docs/families",
        "docs/networks",
    ],
    "More to make": [
        "docs/own-measures",
        "packages/vitscope-scans/README",
        "docs/training",
        "docs/buildup",
        "docs/videos",
    ],
    "Running": ["docs/cluster", "docs/scale", "docs/cache", "docs/benchmarks", "docs/security"],
    "About": ["docs/reliability", "docs/measures", "CONTRIBUTING", "docs/releasing", "CHANGELOG"],
}


def add_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Add the contents to the first page, which does not have them in the repository."""
    for chapter, pages in CHAPTERS.items() if page == root_doc else ():
        listed = "".join(f"/{each}\n" for each in pages)
        source[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n:caption: {chapter}\n\n{listed}```\n"


def finish(app: Sphinx, error: Exception | None) -> None:
    """Write what Sphinx does not: the first page by its usual name, small pictures, llms.txt."""
    if error:
        return
    shutil.copy(app.outdir / "README.html", app.outdir / "index.html")
    shrink_pictures(app.outdir / "docs" / "figures.html")
    (app.outdir / "llms.txt").write_text(list_for_machines(app), encoding="utf-8")


def shrink_pictures(gallery: Path) -> None:
    """Show the pictures of a page small: sixty in full size would be megabytes."""
    text, images = gallery.read_text(encoding="utf-8"), gallery.parents[1] / "_images"
    (images / "small").mkdir(exist_ok=True)
    for name in set(re.findall(r'_images/(\w+)\.png" width', text)):
        with Image.open(images / f"{name}.png") as picture:
            picture.thumbnail((480, 480))
            picture.save(images / "small" / f"{name}.webp")
    text = re.sub(
        r'_images/(\w+)\.png" width', r'_images/small/\1.webp" loading="lazy" width', text
    )
    gallery.write_text(text, encoding="utf-8")


def list_for_machines(app: Sphinx) -> str:
    """Return each page with its title, its address and its first sentence, one a line."""
    lines = [f"# {project}", ""]
    for page in (root_doc, *app.env.toctree_includes[root_doc]):
        paragraphs = app.env.get_doctree(page).findall(nodes.paragraph)
        texts = (" ".join(each.astext().split()) for each in paragraphs)
        first = re.split(r"(?<=[.]) (?=[A-Z])", next(text for text in texts if len(text) > 40))[0]
        title, address = app.env.titles[page].astext(), app.builder.get_target_uri(page)
        lines.append(f"- [{title}]({address}): {first}")
    return "\n".join(lines) + "\n"


def setup(app: Sphinx) -> None:
    """Connect the above."""
    app.connect("source-read", add_contents)
    app.connect("build-finished", finish)
