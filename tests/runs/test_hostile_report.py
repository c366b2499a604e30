"""A report of a study whose every text, name and file tries to be more than text."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from snakemake.report import html_reporter

from tests.helpers.web import running_site, whole
from tests.runs.browser import visit
from tests.runs.copies import Workflow, copy_workflow, write_study
from tests.security.test_secrets import SECRET
from tests.security.test_shell import below, weights_of

pytestmark = pytest.mark.nightly
NAME = "hostile"


def attack(place: str) -> str:
    """Return a text that runs where it ends a script, is an element or is markup."""
    return (
        f"{place}</script><script>owned='{place}'</script><!--<script>\"'>"
        "<img src=x onerror=owned=1> {{ 7 * 7 }} {model} `x <javascript:owned=1>`_ |a| *b* _c"
    )


# Directives as paragraphs, in a list and after text.
MEASURE = f'''"""{attack("docstring")}. More of it.

.. raw:: html

   <img src=x onerror=owned=1>

- .. include:: /etc/hostname

{attack("paragraph")}
"""


def measure(maps):
    return maps.mean(axis=(1, 2, 3))
'''
# Opens what each result is called and shows; tells what texts have made and run.
OPEN_ALL = """
  await until(() => document.querySelector(".prose.max-w-lg"));
  const seen = {texts: document.body.innerText, made: []};
  for (const path of Object.keys(results)) {
    app.showResultInfo(path);
    await wait(300);
    seen.texts += document.body.innerText;
    seen.made.push(...document.querySelectorAll("#app script, img[src=x]"));
    seen.made.push(...document.querySelectorAll("#app blockquote, a[href*='owned=']"));
  }
  seen.made = seen.made.map((e) => e.outerHTML);
  seen.owned = window.owned ?? null;
  seen.frames = [];
  for (const [path, result] of Object.entries(results)) {
    if (result.mime_type !== "text/html") continue;
    const frame = document.createElement("iframe");
    frame.srcdoc = await (await fetch(result.data_uri)).text();
    document.body.append(frame);
    await wait(300);
    seen.frames.push([path, frame.contentWindow.owned ?? null]);
  }
  return seen;
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    studies = tmp_path_factory.mktemp("studies")
    workflow = copy_workflow(tmp_path_factory.mktemp("report") / "copy", studies)
    # A folder's name has no slash, a line of a list has any character.
    folders = [attack(f"folder{n}").replace("/", "")[:120] for n in range(10)]
    for place, folder in enumerate(folders):
        (studies / "images" / folder).mkdir(parents=True)
        pixels = np.full((32, 32, 3), 20 * place, np.uint8)
        for n in range(2):
            Image.fromarray(pixels + np.uint8(n)).save(studies / "images" / folder / f"{n}.png")
    (studies / "names.txt").write_text("\n".join(attack(f"class{n}") for n in range(10)))
    pixels = np.arange(16 * 32 * 32 * 3).reshape(16, 32, 32, 3).astype(np.uint8)
    np.savez(studies / "images.npz", images=pixels, labels=np.arange(16) % 10)
    (studies / "own.py").write_text(MEASURE)
    data = weights_of("vit", studies / "vit.pth")
    weights_of("resnet", studies / "resnet.pth")

    def hostile(settings: dict[str, Any]) -> None:
        settings |= {"title": attack("title"), "description": attack("description")}
        images = {"source": {"kind": "folder", "path": str(studies / "images")}}
        entry = settings["data"].pop("shapes32")
        settings["data"]["folders"] = entry | images | {"splits": {"test": {"images": 16}}}
        names = {"class_names": str(studies / "names.txt")}
        listed = {"source": {"kind": "npz", "path": str(studies / "images.npz")}}
        settings["data"]["listed"] = entry | listed | names | {"splits": {"test": {"images": 16}}}
        local, remote = settings["models"]["resnet"], settings["models"]["vit"]
        local |= {"label": attack("label"), "checkpoint": {"path": str(studies / "resnet.pth")}}
        url = f"{site.root}/vit.pth?sig={SECRET}"
        remote |= {"label": attack("other"), "checkpoint": {"url": url}}
        local["data"], remote["data"] = "folders", "listed"
        settings["measures"] = {"own": {"file": "own.py"}}
        settings["figures"]["fig9"].pop("published")
        settings["figures"]["own"] = {"kind": "own", "models": ["resnet", "vit"]}

    with running_site() as site:
        site.at("/vit.pth", whole(data))
        write_study(studies / f"{NAME}.yaml", hostile)
        targets = ("all", f"results/{NAME}/curves.html", f"figures/{NAME}/network_vit.svg")
        workflow.make("--cores", "2", *targets, default=NAME)
        workflow.make(*targets, "--report", "report.html", default=NAME)
    return workflow


def test_nothing_that_a_text_says_is_run_or_made(made: Workflow) -> None:
    page = made.root / "report.html"
    template = Path(html_reporter.__file__).parent / "template" / "index.html.jinja2"
    elements, parser = [], HTMLParser()
    parser.handle_starttag = lambda tag, _: elements.append(tag)
    parser.feed(page.read_text(encoding="utf-8"))
    parser.close()
    assert elements.count("script") == template.read_text(encoding="utf-8").count("<script")
    assert not {"img", "svg"} & {*elements}
    seen = visit(page, OPEN_ALL)
    assert (seen["owned"], seen["made"]) == (None, [])
    assert len(seen["frames"]) >= 4
    assert {owned for _, owned in seen["frames"]} == {None}
    # They are read as they were written, where they are shown at all.
    said = seen["texts"].replace("\u2060", "")
    for place in ("title", "description", "docstring", "paragraph", "label", "class0", "folder0"):
        assert f"{place}<" in said, place
    assert ".. include:: /etc/hostname" in said
    assert ".. raw:: html" in said


def test_no_token_is_in_the_report_or_in_what_snakemake_keeps(made: Workflow) -> None:
    kept = below(made.root, ".snakemake", "results", "figures", "logs", "benchmarks")
    assert len([file for file in kept if ".snakemake/metadata" in str(file)]) > 10
    files = [made.root / "report.html", made.studies / f"{NAME}.lock.yaml", *kept]
    assert not [file for file in files if SECRET.encode() in file.read_bytes()]
    noted = [json.dumps(file.read_text(errors="replace")) for file in kept]
    assert any("vit.pth?sig=~" in text for text in noted)
