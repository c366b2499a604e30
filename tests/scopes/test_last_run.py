"""What the last run of the default study made of its ViT, looked at in memory: the same bits."""

import os
from pathlib import Path

import pandas as pd
import pytest

from tests.helpers.looking import Made, in_memory
from vitscope.measures import registry
from vitscope.package_data import ROOT
from vitscope.scopes.looking import Scope
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

RESULTS = Path(os.environ.get("VITSCOPE_RESULTS", ROOT / "results"))
MODEL = "vit"


def cheap() -> list[str]:
    """Return the tables that take a pass or two; of all others there is a nightly test."""
    shown = load_study(BUNDLED_STUDIES / "mini.yaml").models_of
    measures = {name: registry.declared(name) for name in in_memory()[1:] if MODEL in shown(name)}
    needs = {
        name: registry.declared(each.parts_of or name).needs for name, each in measures.items()
    }
    passes = [
        name
        for name in needs
        if needs[name] in ("latents", "predictions", "network") or measures[name].reads_attention
    ]
    return ["blocks", *passes]


@pytest.fixture(scope="module")
def mini() -> Made:
    return Made(load_study(BUNDLED_STUDIES / "mini.yaml"), RESULTS)


@pytest.fixture(scope="module")
def scope(mini: Made) -> Scope:
    return mini.looked_at(MODEL)


@pytest.mark.last_run
@pytest.mark.parametrize("table", cheap())
def test_a_table(mini: Made, scope: Scope, table: str) -> None:
    found, expected = scope.table(table), mini.table(table, MODEL)
    pd.testing.assert_frame_equal(found, expected, check_exact=True, obj=table)
