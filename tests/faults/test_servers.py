"""Servers that misbehave, as a user of the workflow meets them; tests/web has more."""

from pathlib import Path

import pytest
import yaml

from tests.helpers.web import Answer, broken, ranged, running_site, stalling, whole
from tests.runs.copies import SETTINGS, Workflow, copy_workflow, write_study

pytestmark = pytest.mark.nightly

NAME = "own"


def html(handler) -> None:
    page = b"<!DOCTYPE html><html><body>Please log in</body></html>"
    handler.begin(200, Content_Length=len(page), Content_Type="text/html")
    handler.wfile.write(page)


def fetched(root: Path, answers: dict[str, list[Answer]]) -> tuple[Workflow, str]:
    """Fetch a checkpoint of each name from a server that answers so; return what was printed."""
    root.mkdir(exist_ok=True)
    with running_site() as site:

        def change(settings) -> None:
            model = SETTINGS["models"]["vit"]
            settings["models"] = {
                name: model | {"checkpoint": {"url": site.at(f"/{name}", *given)}}
                for name, given in answers.items()
            }
            settings["figures"] = {"fig9": {"kind": "feature_variance", "models": list(answers)}}

        write_study(root / f"{NAME}.yaml", change)
        workflow = copy_workflow(root / "copy", root)
        wanted = [f"results/{NAME}/checkpoints/{name}.safetensors" for name in answers]
        _, output = workflow.run("--cores", "1", "--keep-going", *wanted, default=NAME)
    assert "Traceback" not in output
    return workflow, output


def test_servers_that_misbehave(tmp_path: Path, weights: dict[str, Path]) -> None:
    one, other = weights["vit"].read_bytes(), weights["warmup"].read_bytes()
    half = len(one) // 2
    workflow, output = fetched(
        tmp_path,
        {
            "dropped": [broken(one, half, ETag='"1"'), ranged(one, '"1"')],
            "changed": [broken(one, half, ETag='"1"'), ranged(other, '"2"')],
            "page": [html],
        },
    )
    results = workflow.root / "results" / NAME
    downloads = {path.name: path.read_bytes() for path in (results / "downloads").iterdir()}
    # Of the file that changed there is no half of the one and half of the other.
    assert downloads == {"dropped.checkpoint": one, "changed.checkpoint": other}
    made = sorted(path.name for path in (results / "checkpoints").iterdir())
    assert made == ["changed.safetensors", "dropped.safetensors"]
    assert "gives a web page and not the file: open it in a browser to see why" in output
    lock = yaml.safe_load((tmp_path / f"{NAME}.lock.yaml").read_text())
    assert {entry["bytes"] for entry in lock.values()} == {len(one), len(other)}


def test_a_server_that_stalls(tmp_path: Path, weights: dict[str, Path]) -> None:
    one = weights["vit"].read_bytes()
    answers = {"stalled": [stalling(one, len(one) // 2), whole(one)]}
    workflow, output = fetched(tmp_path, answers)
    assert "sent nothing for 30 s: next attempt, 2 of 5" in output
    downloaded = workflow.root / "results" / NAME / "downloads" / "stalled.checkpoint"
    assert downloaded.read_bytes() == one
