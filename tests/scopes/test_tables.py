"""What is measured in memory is what the workflow makes, to the last bit."""

from collections.abc import Iterator

import pandas as pd
import pytest

from tests.helpers.looking import Made
from tests.runs.copies import TINY, Workflow
from vitscope.scopes.looking import Scope
from vitscope.settings.loading import load_study
from vitscope.workflow import params


@pytest.fixture(scope="module")
def tiny(made: Workflow) -> Made:
    return Made(load_study(made.studies / f"{TINY}.yaml"), made.root / "results")


@pytest.fixture(scope="module")
def scope(tiny: Made) -> Iterator[Scope]:
    """The ViT of the study on its test images, in one shard and not in two."""
    return tiny.looked_at("vit")


@pytest.mark.parametrize(
    "table",
    ["blocks", "feature_variance", "fourier", "spectrum", "cka", "classification", "reliability"],
)
def test_tables_of_test_images(tiny: Made, scope: Scope, table: str) -> None:
    pd.testing.assert_frame_equal(scope.table(table), tiny.table(table, "vit"), check_exact=True)


def test_tables_of_the_loss(tiny: Made) -> None:
    recipe = params.augmentation(tiny.study, "vit")
    augment = {key: value for key, value in recipe.items() if key not in ("images", "seed")}
    decay = tiny.study.weight_decay("vit")
    scope = tiny.looked_at("vit", "train", loss={"weight_decay": decay, "augment": augment})
    found = scope.table("landscape")
    pd.testing.assert_frame_equal(found, tiny.table("landscape", "vit"), check_exact=True)
