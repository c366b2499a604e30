from pathlib import Path
from typing import Any

from tests.helpers.web import Site, status, whole
from tests.runs.copies import SETTINGS, Workflow, write_study


def with_models(folder: Path, checkpoints: dict[str, dict[str, Any]]) -> None:
    """Write the study `broken`: the ViT once for each checkpoint, and a figure of each."""
    vit = SETTINGS["models"]["vit"]
    models = {name: vit | {"checkpoint": each} for name, each in checkpoints.items()}
    figures = {name: {"kind": "feature_variance", "models": [name]} for name in checkpoints}
    write_study(folder / "broken.yaml", lambda study: study.update(models=models, figures=figures))


def web_page(folder: Path) -> Path:
    """Write what a server sends in place of a checkpoint."""
    page = folder / "page.pth.tar"
    page.write_text("<!DOCTYPE html><html><body>Not found</body></html>")
    return page


def failures(workflow: Workflow, folder: Path, *targets: str) -> str:
    """Run what must fail; return what it printed, when no part of an output was left."""
    code, output = Workflow(workflow.root, folder).run("--keep-going", *targets)
    assert code != 0
    assert "Traceback" not in output
    for made in ("results/broken/checkpoints", "results/broken/downloads", "figures/broken"):
        left = [path for path in (workflow.root / made).rglob("*") if path.is_file()]
        assert left == []
    return output


def test_checkpoints_that_cannot_be_used(
    fresh: Workflow, weights: dict[str, Path], tmp_path: Path, site: Site
) -> None:
    """In one run: what logs say is shown where jobs fail, and at the end, where the eye is."""
    page = web_page(tmp_path)
    changed = site.at("/changed.pth", whole(weights["vit"].read_bytes()))
    sentences = {
        "page": ({"path": str(page)}, f"{page} is a web page and not a checkpoint"),
        "foreign": (
            {"path": str(weights["resnet"])},
            f"{weights['resnet']} does not fit the model (missing: ",
        ),
        "gone": ({"url": site.at("/gone.pth", status(404))}, "/gone.pth does not exist (404 "),
        "changed": ({"url": changed, "sha256": "f" * 64}, f"where the study says {'f' * 64}"),
    }
    with_models(tmp_path, {name: entry for name, (entry, _) in sentences.items()})
    targets = (f"results/broken/checkpoints/{name}.safetensors" for name in sentences)
    output = failures(fresh, tmp_path, *targets)
    last = output.splitlines()[-len(sentences) :]
    for name, (_, sentence) in sentences.items():
        (line,) = [line for line in last if line.startswith(f"vitscope: {name}: ")]
        assert sentence in line
        assert output.count(line) == 2
    assert not (tmp_path / "broken.lock.yaml").exists()


def test_a_failure_is_told_without_the_profile_too(fresh: Workflow, tmp_path: Path) -> None:
    page = web_page(tmp_path)
    with_models(tmp_path, {"page": {"path": str(page)}})
    target = "results/broken/checkpoints/page.safetensors"
    output = failures(fresh, tmp_path, "--workflow-profile", "none", "--cores", "1", target)
    last = output.splitlines()[-1]
    assert last.startswith(f"vitscope: page: {page} is a web page and not a checkpoint")
    assert output.count(last) == 1
