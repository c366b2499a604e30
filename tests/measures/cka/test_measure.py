from pathlib import Path
from typing import Any

import pytest

from tests.helpers.refusals import refusal
from tests.helpers.studies import mini_with
from vitscope.measures import registry
from vitscope.studies.loading import load_study


def changed(folder: Path, analysis: dict[str, Any], kind: str = "cka") -> Path:
    shown = {"pairs": [["vit", "swin"]]} if kind == "cka_between" else {"models": ["vit"]}
    figures = {"one": {"kind": kind, **shown}}
    return mini_with(folder, analysis=analysis, figures=figures)


@pytest.mark.parametrize(
    ("images", "shard_size", "batch", "expected"),
    [(1000, 250, 50, 50), (250, 250, 64, 64), (1000, 128, 64, 64), (30, 250, 64, 30)],
)
def test_batches_that_no_shard_cuts(
    tmp_path: Path, images: int, shard_size: int, batch: int, expected: int
) -> None:
    analysis = {"images": images, "shard_size": shard_size, "cka": {"batch_size": batch}}
    study = load_study(changed(tmp_path, analysis))
    for measure in map(registry.declared, ("cka", "cka_between")):
        assert measure.measuring(study, "vit", 0) == {"batch_size": expected}


@pytest.mark.parametrize("kind", ["cka", "cka_between"])
@pytest.mark.parametrize(("images", "shard_size"), [(1000, 250), (30, 20)])
def test_batches_that_a_shard_would_cut_are_refused(
    tmp_path: Path, kind: str, images: int, shard_size: int
) -> None:
    path = changed(tmp_path, {"images": images, "shard_size": shard_size}, kind)
    assert refusal(load_study, path) == (
        f"{path}: analysis.cka.batch_size: found 64, allowed: a divisor of analysis.shard_size, "
        f"which is {shard_size}."
    )


@pytest.mark.parametrize(("kind", "first"), [("cka", "vit"), ("cka_between", "swin")])
def test_too_few_images_are_refused(tmp_path: Path, kind: str, first: str) -> None:
    path = changed(tmp_path, {"images": 3}, kind)
    assert refusal(load_study, path) == (
        f"{path}: models.{first} is measured on too few images for a figure of the kind "
        f"'{kind}': found 3, allowed: 4 or more."
    )
