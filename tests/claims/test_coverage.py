"""Intervals of this network contain what all images would give in 95 of 100 draws of images."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from vitscope.claims.chance import mean_interval
from vitscope.claims.points import Points
from vitscope.claims.statistics import changes_more, falls, grows_with_depth
from vitscope.measures.per_image import spread

IMAGES, BLOCKS, DRAWS = 256, 24, 500
# Spread of true changes over blocks, in standard errors of a mean over the images: with it 14 of
# 15 have a certain sign, as measured (204 of 219).
EFFECT = 23.0


def draw(generator: np.random.Generator, effect: float) -> tuple[Points, np.ndarray]:
    """Return the points of a network whose blocks change a value, and the true changes."""
    true = effect / np.sqrt(IMAGES) * generator.standard_normal(BLOCKS)
    steps = true + generator.standard_normal((IMAGES, BLOCKS))
    values = np.cumsum(np.column_stack([generator.standard_normal(IMAGES), steps]), axis=1)
    kinds, depth = ["stem", *["msa", "mlp"] * (BLOCKS // 2)], np.linspace(0, 1, BLOCKS + 1)
    columns = {"v": values.mean(axis=0)} | spread(values, 400, seed=0).columns("v")
    frame = pd.DataFrame({"kind": kinds, "depth": depth, "subsampling": False, **columns})
    return Points(frame), true


def truths(true: np.ndarray) -> dict[str, float]:
    msas, mlps = true[0::2], true[1::2]
    return {
        "share": (msas < 0).mean(),
        "trend": spearmanr(range(BLOCKS + 1), np.cumsum([0, *true])).statistic,
        "difference": msas.mean() - mlps.mean(),
    }


def test_shares_trends_and_differences_are_covered():
    statistics = {
        "share": falls("msa", "v", "value"),
        "trend": grows_with_depth("v", "value"),
        "difference": changes_more("v", "value", "msa", "mlp"),
    }
    generator = np.random.default_rng(0)
    held = dict.fromkeys(statistics, 0)
    for _ in range(DRAWS):
        points, true = draw(generator, EFFECT)
        for name, truth in truths(true).items():
            low, high = statistics[name].find(points).interval
            held[name] += low - 1e-9 <= truth <= high + 1e-9
    assert 0.93 <= held["trend"] / DRAWS <= 0.97
    assert 0.93 <= held["difference"] / DRAWS <= 0.97
    # A share of 12 has few values: its interval is one of them where all signs are certain.
    assert held["share"] / DRAWS >= 0.95


@pytest.mark.parametrize("batches", [20, 40])
def test_means_over_batches_are_covered(batches):
    """Values of batches are skewed, as eigenvalues are."""
    values = np.random.default_rng(1).gamma(4, size=(4000, batches))
    ends = [mean_interval(each) for each in values]
    held = np.mean([low <= 4 <= high for low, high in ends])
    assert 0.93 <= held <= 0.97
