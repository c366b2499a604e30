from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers import latents
from tests.helpers.drawing import draw_kind
from tests.helpers.golden import Golden
from tests.helpers.latents import GoldenLatents
from vitscope.drawing.saving import style
from vitscope.package_data import PUBLISHED_POINTS, STYLE

# Kinds, stages and sizes of the cut points of a ResNet-50, a ViT of 12 blocks, and a Swin-Ti.
MODELS = {
    "resnet": (
        ["stem"] + ["conv"] * 16,
        [0] + [1] * 3 + [2] * 4 + [3] * 6 + [4] * 3,
        [32] * 4 + [16] * 4 + [8] * 6 + [4] * 3,
    ),
    "vit": (["stem"] + ["msa", "mlp"] * 12, [0] + [1] * 24, [16] * 25),
    "swin": (
        ["stem"]
        + ["msa", "mlp"] * 2
        + (["pool"] + ["msa", "mlp"] * 2)
        + (["pool"] + ["msa", "mlp"] * 6)
        + (["pool"] + ["msa", "mlp"] * 2),
        [0] + [1] * 4 + [2] * 5 + [3] * 13 + [4] * 5,
        [32] * 5 + [16] * 5 + [8] * 13 + [4] * 5,
    ),
}


def cut_points(model: str) -> pd.DataFrame:
    kinds, stages, sizes = MODELS[model]
    index = np.arange(len(kinds))
    return pd.DataFrame(
        {
            "model": model,
            "index": index,
            "name": [f"block{i}" for i in index],
            "kind": kinds,
            "stage": stages,
            "depth": index / index[-1],
            "channels": 64,
            "height": sizes,
            "width": sizes,
        }
    )


def variances(model: str, values: list[float]) -> pd.DataFrame:
    value = np.asarray(values, dtype=float)
    interval = {"ci_low": value * 0.95, "ci_high": value * 1.05}
    return cut_points(model).assign(images=100, variance=value, **interval)


def resnet(variance: list[float] | None = None) -> pd.DataFrame:
    """The variances of the ResNet-50."""
    return variances("resnet", variance or [0.1 + 0.05 * i for i in range(17)])


def vit(variance: list[float] | None = None) -> pd.DataFrame:
    """The variances of the ViT."""
    return variances("vit", variance or [0.02 + 0.003 * i for i in range(25)])


@pytest.fixture
def table() -> pd.DataFrame:
    return pd.concat([vit(), resnet()]).sample(frac=1, random_state=0)


@pytest.fixture
def points_file() -> Path:
    """The published points of Fig. 9."""
    return PUBLISHED_POINTS / "fig9.csv"


@pytest.fixture
def drawn_from():
    """Draws a figure of a kind from its tables, without laying it out."""

    def draw_it(kind, tables, members, published=None, snapshots=(), **options):
        with style(STYLE):
            return draw_kind(kind, tables, members, published or {}, snapshots, **options)

    return draw_it


@pytest.fixture
def laid_out(drawn_from):
    """Draws a figure of a kind, so that all of it is where it will be."""

    def draw_it(*arguments, **options):
        figure = drawn_from(*arguments, **options)
        with style(STYLE):
            figure.draw_without_rendering()
        return figure

    return draw_it


@pytest.fixture(scope="session", params=["resnet_50", "vit_ti"])
def golden_latents(
    golden: Golden, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> GoldenLatents:
    """The latents of a golden network, which take seconds: once for all measures of them."""
    return latents.golden_latents(golden, request.param, tmp_path_factory.mktemp("golden"))
