"""What the last run of the default study made of its ViT, looked at in memory: the same bits."""

import os
from pathlib import Path

import pandas as pd
import pytest

from tests.helpers.looking import Made, in_memory, of_the_loss
from vitscope.package_data import ROOT
from vitscope.scopes.looking import Scope
from vitscope.settings.loading import BUNDLED_STUDIES, load_study

RESULTS = Path(os.environ.get("VITSCOPE_RESULTS", ROOT / "results"))
MODEL = "vit"


@pytest.fixture(scope="module")
def mini() -> Made:
    return Made(load_study(BUNDLED_STUDIES / "mini.yaml"), RESULTS)


@pytest.fixture(scope="module")
def scopes(mini: Made) -> tuple[Scope, Scope]:
    """The network with its test images, and with the training images that its loss is of."""
    return mini.looked_at(MODEL), of_the_loss(mini, MODEL)


@pytest.mark.last_run
@pytest.mark.parametrize("table", in_memory())
def test_a_table(mini: Made, scopes: tuple[Scope, Scope], table: str) -> None:
    measured, of_loss = scopes
    scope = of_loss if table in ("landscape", "hessian", "hessian_density") else measured
    expected = mini.table(table, MODEL)
    if "snapshot" in expected:
        # Of the end alone: other moments of training are no part of a network in memory.
        expected = expected[expected["snapshot"] == "end"].reset_index(drop=True)
    pd.testing.assert_frame_equal(scope.table(table), expected, check_exact=True, obj=table)
