"""What CKA between two networks declares: pairs, and the batches of CKA."""

from pathlib import Path
from typing import Any

import pytest

from tests.helpers.studies import mini_with
from vitscope.errors import VitscopeError
from vitscope.measures import registry
from vitscope.settings.loading import load_study


def changed(folder: Path, analysis: dict[str, Any]) -> Path:
    """The bundled study with one figure and other settings."""
    figures = {"one": {"kind": "cka_between", "pairs": [["vit", "swin"]]}}
    return mini_with(folder, analysis=analysis, figures=figures)


def test_its_batches_are_those_of_cka(tmp_path: Path) -> None:
    study = load_study(changed(tmp_path, {"images": 60, "cka": {"batch_size": 20}}))
    for model in ("vit", "swin"):
        for measure in map(registry.declared, ("cka", "cka_between")):
            assert measure.part(study, model, 0) == {"batch_size": 20}


def test_batches_that_a_shard_would_cut_are_refused(tmp_path: Path) -> None:
    path = changed(tmp_path, {"images": 200, "shard_size": 100})
    with pytest.raises(VitscopeError) as caught:
        load_study(path)
    assert str(caught.value) == (
        f"{path}: analysis.cka.batch_size: found 64, allowed: a divisor of analysis.shard_size, "
        "which is 100."
    )


def test_too_few_images_are_refused(tmp_path: Path) -> None:
    path = changed(tmp_path, {"images": 3})
    with pytest.raises(VitscopeError) as caught:
        load_study(path)
    assert str(caught.value) == (
        f"{path}: models.swin is measured on too few images for a figure of the kind "
        "'cka_between': found 3, allowed: 4 or more."
    )
