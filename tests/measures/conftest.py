"""Tables as a study would measure them, without a model."""

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


def cut_points(model: str, kinds: list[str], sizes: list[int], variance: list[float]):
    """A feature_variance table of one model."""
    count = len(kinds)
    value = np.asarray(variance, dtype=float)
    return pd.DataFrame(
        {
            "model": model,
            "index": np.arange(count),
            "name": [f"block{i}" for i in range(count)],
            "kind": kinds,
            "stage": 0,
            "depth": np.arange(count) / (count - 1),
            "channels": 64,
            "height": sizes,
            "width": sizes,
            "images": 100,
            "variance": value,
            "ci_low": value * 0.95,
            "ci_high": value * 1.05,
        }
    )


def resnet(variance: list[float] | None = None) -> pd.DataFrame:
    """The cut points of a ResNet-50, stages of 3, 4, 6 and 3 blocks."""
    sizes = [32] * 4 + [16] * 4 + [8] * 6 + [4] * 3
    values = variance or [0.1 + 0.05 * i for i in range(17)]
    return cut_points("resnet", ["stem"] + ["conv"] * 16, sizes, values)


def vit(variance: list[float] | None = None) -> pd.DataFrame:
    """The cut points of a ViT of 12 blocks."""
    values = variance or [0.02 + 0.003 * i for i in range(25)]
    return cut_points("vit", ["stem"] + ["msa", "mlp"] * 12, [16] * 25, values)


@pytest.fixture
def table() -> pd.DataFrame:
    """Both models in one table, in no particular order."""
    return pd.concat([vit(), resnet()]).sample(frac=1, random_state=0)


@pytest.fixture
def style_file() -> Path:
    """The style of the project."""
    return STYLE


@pytest.fixture
def points_file() -> Path:
    """The published points of Fig. 9."""
    return PUBLISHED_POINTS / "fig9.csv"


@pytest.fixture
def drawn_from(style_file):
    """Draws a figure of a kind from its tables, without laying it out."""

    def draw_it(kind, tables, members, published=None, snapshots=()):
        with style(style_file):
            return draw_kind(kind, tables, members, published or {}, snapshots)

    return draw_it


@pytest.fixture
def laid_out(style_file, drawn_from):
    """Draws a figure of a kind, so that all of it is where it will be."""

    def draw_it(*arguments):
        figure = drawn_from(*arguments)
        with style(style_file):
            figure.draw_without_rendering()
        return figure

    return draw_it


@pytest.fixture(scope="session", params=["resnet_50", "vit_ti"])
def golden_latents(
    golden: Golden, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> GoldenLatents:
    """The latents of a golden network, which take seconds: once for all measures of them."""
    return latents.golden_latents(golden, request.param, tmp_path_factory.mktemp("golden"))
