from pathlib import Path
from typing import Any

import pytest
import torch

from tests.helpers.web import running_site, whole
from tests.runs.copies import SETTINGS, Workflow, copy_workflow, write_study
from tests.security.test_secrets import SECRET
from vitscope.networks.building.networks import find_family

SHELL = "$(touch ran) `touch ran` ; touch ran | touch ran & 'touch ran' \"touch ran\" > ran"
PAGE = (
    "<script>alert(1)<img src=x onerror=alert(1)> {{ 7 * 7 }} .. raw:: html %(x)s {model} "
    "{wildcards.model} \\ * _ |"
)
FORMULA = r"$\frac$ Ω漢 \input{/etc/passwd}"


@pytest.fixture(scope="module")
def workflow(tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    studies = tmp_path_factory.mktemp("studies")
    return copy_workflow(tmp_path_factory.mktemp("shell") / "copy", studies)


def weights_of(name: str, path: Path) -> bytes:
    model = SETTINGS["models"][name]
    torch.save(find_family(model["family"]).build(model["arch"], 10, 32).state_dict(), path)
    return path.read_bytes()


def below(folder: Path, *places: str) -> list[Path]:
    files = (file for place in places for file in (folder / place).rglob("*"))
    return [file for file in files if file.is_file()]


@pytest.mark.nightly
def test_no_text_of_a_study_reaches_a_shell(workflow: Workflow) -> None:
    # A folder of the name of a command; a slash would make it several.
    strange = workflow.root / SHELL.replace("/", "") / "%s *.d"
    strange.mkdir(parents=True)
    weights_of("resnet", strange / "resnet.pth.tar")
    data = weights_of("vit", workflow.studies / "vit.pth")
    with running_site() as site:
        site.at("/vit.pth", whole(data))

        def nasty(settings: dict[str, Any]) -> None:
            settings["title"] = SHELL
            settings["description"] = f"{PAGE}\n{SHELL}"
            local, remote = settings["models"]["resnet"], settings["models"]["vit"]
            local |= {"label": PAGE, "checkpoint": {"path": str(strange / "resnet.pth.tar")}}
            url = f"{site.root}/vit.pth?token={SECRET}=&;touch%20ran"
            remote |= {"label": FORMULA, "checkpoint": {"url": url}}
            settings["figures"]["fig9"].pop("published")

        write_study(workflow.studies / "nasty.yaml", nasty)
        made = ("figures/nasty/fig9.pdf", "results/nasty/run.yaml")
        output = workflow.make("--cores", "2", *made)
        assert len(site.asked("/vit.pth")) == 1
    assert not [path for path in workflow.root.rglob("*") if path.name == "ran"]
    assert not Path("ran").exists()
    svg = (workflow.root / "figures/nasty/fig9.svg").read_text(encoding="utf-8")
    assert "<script" not in svg
    assert "<script" not in (workflow.root / "results/nasty/run.html").read_text()
    texts = below(workflow.root, "results", "figures", "logs", "benchmarks")
    assert len(texts) > 20
    assert not [file for file in texts if SECRET.encode() in file.read_bytes()]
    lock = (workflow.studies / "nasty.lock.yaml").read_text()
    assert "/vit.pth?token=~" in lock
    assert SECRET not in output + lock
