"""What a user got wrong ends in one sentence, and leaves no file."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helpers.web import Site, broken, running_site, status, whole
from tests.runs.copies import SETTINGS, Workflow, write_study


@pytest.fixture(scope="module")
def site():
    with running_site() as running:
        yield running


def with_models(folder: Path, checkpoints: dict[str, dict[str, Any]], **changes: Any) -> None:
    """Write the study `broken`: the ViT once for each checkpoint, and a figure of each."""

    def change(settings: dict[str, Any]) -> None:
        vit = SETTINGS["models"]["vit"] | changes
        settings["models"] = {name: vit | {"checkpoint": c} for name, c in checkpoints.items()}
        settings["figures"] = {
            name: {"kind": "feature_variance", "models": [name]} for name in checkpoints
        }

    write_study(folder / "broken.yaml", change)


def checkpoint(model: str) -> str:
    return f"results/broken/checkpoints/{model}.safetensors"


def failures(workflow: Workflow, folder: Path, *targets: str) -> str:
    """Run what must fail; return what it printed, when no part of an output was left."""
    code, output = Workflow(workflow.root, folder).run("--keep-going", *targets)
    assert code != 0
    assert "Traceback" not in output
    for made in ("results/broken/checkpoints", "results/broken/downloads", "figures/broken"):
        left = [path for path in (workflow.root / made).rglob("*") if path.is_file()]
        assert left == []
    return output


def test_checkpoints_that_cannot_be_used(fresh, weights, tmp_path):
    good = weights["vit"]
    halved = tmp_path / "halved.pth.tar"
    halved.write_bytes(good.read_bytes()[: good.stat().st_size // 2])
    page = tmp_path / "page.pth.tar"
    page.write_text("<!DOCTYPE html><html><body>Not found</body></html>")
    with_models(
        tmp_path,
        {
            "halved": {"path": str(halved)},
            "page": {"path": str(page)},
            "other": {"path": str(good), "sha256": "f" * 64},
            "foreign": {"path": str(weights["resnet"])},
        },
    )
    models = ("halved", "page", "other", "foreign")
    output = failures(
        fresh, tmp_path, *(f"results/broken/checkpoints/{m}.safetensors" for m in models)
    )
    for sentence in (
        f"vitscope: halved: {halved} is damaged or is not a checkpoint",
        f"vitscope: page: {page} is a web page and not a checkpoint",
        f"vitscope: other: {good} has the SHA-256",
        f"vitscope: foreign: {weights['resnet']} does not fit the model (missing: ",
    ):
        assert output.count(sentence) == 1
    # Last, where the eye is.
    last = output.splitlines()[-len(models) :]
    assert {line.partition(": ")[2].partition(":")[0] for line in last} == {*models}


def test_a_checkpoint_that_does_not_exist(fresh, tmp_path):
    with_models(tmp_path, {"vit": {"path": str(tmp_path / "none.pth")}})
    output = failures(fresh, tmp_path, "figures/broken/vit.pdf")
    sentence = (
        f"vitscope: {tmp_path}/broken.yaml: models.vit.checkpoint.path: there is no file "
        f"{tmp_path}/none.pth: put one there or correct the path.\n"
    )
    assert output.endswith(sentence)


@pytest.mark.nightly
def test_an_arch_that_does_not_fit_the_checkpoint(fresh, weights, tmp_path):
    arch = SETTINGS["models"]["vit"]["arch"] | {"embed_dim": 32}
    with_models(tmp_path, {"vit": {"path": str(weights["vit"])}}, arch=arch)
    output = failures(fresh, tmp_path, checkpoint("vit"))
    assert "cls_token (has 1x1x24, needs 1x1x32)" in output
    assert "correct the family, the arch or the number of classes, or `image_size`" in output


def test_downloads_that_fail(fresh, weights, tmp_path, site: Site):
    data = weights["vit"].read_bytes()
    with_models(
        tmp_path,
        {
            "gone": {"url": site.at("/gone.pth", status(404))},
            "other": {"url": site.at("/other.pth", whole(data)), "sha256": "f" * 64},
        },
    )
    models = ("gone", "other")
    output = failures(
        fresh, tmp_path, *(f"results/broken/checkpoints/{m}.safetensors" for m in models)
    )
    assert "404" in output
    assert f"{'f' * 64}" in output
    assert not (tmp_path / "broken.lock.yaml").exists()


@pytest.mark.nightly
def test_a_data_set_that_cannot_be_downloaded(fresh, weights, tmp_path, site: Site):
    url = site.at("/cifar-10-binary.tar.gz", status(404))

    def change(settings: dict[str, Any]) -> None:
        settings["data"]["shapes32"]["source"] = {"kind": "cifar10", "url": url}
        for model in settings["models"].values():
            model["checkpoint"] = {"path": str(weights["vit"])}

    write_study(tmp_path / "broken.yaml", change)
    output = failures(fresh, tmp_path, "results/broken/data/shapes32/test.safetensors")
    assert "vitscope: shapes32: " in output
    assert "404" in output


def test_a_first_download_is_written_down_and_a_later_one_must_match(
    fresh, weights, tmp_path, site: Site
):
    data = weights["vit"].read_bytes()
    url = site.at("/vit.pth", broken(data, len(data) // 2), whole(data), whole(data + b"more"))
    with_models(tmp_path, {"vit": {"url": url}})
    downloaded = "results/broken/downloads/vit.checkpoint"
    output = Workflow(fresh.root, tmp_path).make(downloaded)
    assert "later downloads must match" in output
    assert (fresh.root / downloaded).read_bytes() == data
    lock = yaml.safe_load((tmp_path / "broken.lock.yaml").read_text(encoding="utf-8"))
    assert lock[url]["bytes"] == len(data)

    (fresh.root / downloaded).unlink()
    assert str(tmp_path / "broken.lock.yaml") in failures(fresh, tmp_path, downloaded)
