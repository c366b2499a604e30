from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from tests.compare import EXPECTED, TABLES
from tests.helpers.refusals import refusal
from tests.helpers.tiers import some_of
from vitscope import bundled, look
from vitscope.claims.intervals import without_resamples
from vitscope.data.sources import shapes32
from vitscope.errors import VitscopeError
from vitscope.networks.building.timm_import import import_timm
from vitscope.package_data import ROOT
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

STUDY = load_study(BUNDLED_STUDIES / "mini.yaml")
# Others are one of these with interventions.
OWN = [name for name in STUDY.own_models if not STUDY.models[name].interventions]


def test_weights_are_small_together() -> None:
    named = [ROOT / STUDY.models[name].checkpoint["bundled"] for name in OWN]
    assert sum(path.stat().st_size for path in named) < 14e6


@pytest.mark.parametrize("name", OWN)
def test_weights_are_those_that_the_study_names(name: str) -> None:
    expected = load_file(ROOT / STUDY.models[name].checkpoint["bundled"])
    found = bundled(name, images=1)["model"].state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[key], weights.to(found[key])) for key, weights in expected.items())


@pytest.mark.parametrize("name", some_of(OWN, "resnet", "vit", "swin"))
def test_they_are_small_and_find_the_class(name: str) -> None:
    given = bundled(name, 100)
    assert sum(each.numel() for each in given["model"].parameters()) <= 500_000
    scope = look(**given)
    found = scope.predictions
    assert 0.5 < (found["prediction"] == found["label"]).mean() < 0.98
    assert len(scope.blocks) >= 9


def test_tables_are_those_of_the_study() -> None:
    scope = look(**bundled("resnet"))
    expected = pd.read_csv(EXPECTED / "feature_variance.csv")
    expected = expected[expected["model"] == "resnet"].reset_index(drop=True)
    pd.testing.assert_frame_equal(
        without_resamples(scope.feature_variance),
        expected,
        check_dtype=False,
        rtol=TABLES["feature_variance"].relative,
    )


def test_images_are_some_of_the_test_split() -> None:
    given = bundled("vit", 3)
    drawn = shapes32.draw_shapes("test", np.arange(2000), 0)
    found = drawn.pixels.transpose(0, 3, 1, 2)
    rows = [np.flatnonzero((found == each).all((1, 2, 3))).item() for each in given["images"]]
    assert rows == sorted(rows)
    assert given["labels"].tolist() == drawn.labels[rows].tolist()


def test_they_have_their_name_unless_another_is_given() -> None:
    given = bundled("vit", 1)
    assert [look(**given).name, look(**given, name="mine").name] == ["vit", "mine"]


def test_what_is_not_there_is_told() -> None:
    assert "network 'vti'. Did you mean 'vit'? There are resn" in refusal(bundled, "vti")
    for wrong in (0, 2001):
        with pytest.raises(VitscopeError, match=f"`images` is {wrong}, allowed: from 1 to 2000"):
            bundled("vit", wrong)


def test_a_folder_that_no_study_can_be_called_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    sentence = refusal(look(**bundled("vit", 1)).save, tmp_path / "x.yaml")
    assert sentence.startswith("scope.save: name of the folder: found 'x.yaml', allowed: letters")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.nightly
def test_saved_it_is_a_model_of_the_study(tmp_path: Path) -> None:
    file = look(**bundled("vit_global", 4)).save(tmp_path / "saved")
    (model,) = load_study(file).models.values()
    assert (model.family, model.arch) == (
        STUDY.models["vit_global"].family,
        STUDY.models["vit_global"].arch,
    )


@pytest.mark.nightly
def test_networks_of_timm_are_saved_by_their_name_and_keywords(tmp_path: Path) -> None:
    small = {"num_classes": 3, "img_size": 16}
    network = import_timm().create_model("test_vit", **small, patch_size=4)
    images = np.random.default_rng(0).integers(0, 256, (4, 3, 16, 16), np.uint8)
    scope = look(network, images, [0, 1, 2, 0], mean=0.5, std=0.25)
    with pytest.raises(VitscopeError, match=r"other keywords .* `scope.save\(folder, depth=4\)`"):
        scope.save(tmp_path / "refused")
    (model,) = load_study(scope.save(tmp_path / "saved", patch_size=4)).models.values()
    assert (model.family, model.arch) == ("timm", {"name": "test_vit", "patch_size": 4})
