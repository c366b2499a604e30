import numpy as np
import pandas as pd
import pytest

from tests.compare import EXPECTED, TABLES
from tests.helpers.refusals import refusal
from tests.helpers.tiers import some_of
from vitscope import bundled, look
from vitscope.claims.intervals import without_resamples
from vitscope.data.sources import shapes32
from vitscope.errors import VitscopeError
from vitscope.package_data import BUNDLED_MODELS, ROOT
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

STUDY = load_study(BUNDLED_STUDIES / "mini.yaml")


def test_the_library_has_the_study_and_its_weights() -> None:
    files = {f"{name}.safetensors" for name in STUDY.own_models}
    assert {path.name for path in BUNDLED_MODELS.iterdir()} == files | {"mini.yaml"}
    assert (BUNDLED_MODELS / "mini.yaml").read_bytes() == STUDY.path.read_bytes()
    for name in STUDY.own_models:
        model = STUDY.models[name]
        named = ROOT / model.checkpoint["bundled"]
        assert (BUNDLED_MODELS / f"{name}.safetensors").read_bytes() == named.read_bytes()
    assert sum(path.stat().st_size for path in BUNDLED_MODELS.iterdir()) < 14e6


@pytest.mark.parametrize("name", some_of(STUDY.own_models, "resnet", "vit", "swin"))
def test_they_are_small_and_find_the_class(name: str) -> None:
    given = bundled(name, 100)
    assert sum(each.numel() for each in given["model"].parameters()) <= 500_000
    scope = look(**given)
    found = scope.predictions
    assert 0.6 < (found["prediction"] == found["label"]).mean() < 0.98
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
