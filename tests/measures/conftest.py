import numpy as np
import pandas as pd
import pytest

from tests.helpers import latents
from tests.helpers.golden import Golden
from tests.helpers.latents import GoldenLatents
from tests.helpers.splits import shapes
from vitscope.data.split import Split

# Kinds, stages and sizes of the cut points of a ResNet-50, a ViT of 12 blocks, and a Swin-Ti.
PAIR = ["msa", "mlp"]
MODELS = {
    "resnet": (
        ["stem"] + ["conv"] * 16,
        [0] + [1] * 3 + [2] * 4 + [3] * 6 + [4] * 3,
        [32] * 4 + [16] * 4 + [8] * 6 + [4] * 3,
    ),
    "vit": (["stem", *PAIR * 12], [0] + [1] * 24, [16] * 25),
    "swin": (
        ["stem", *PAIR * 2, "pool", *PAIR * 2, "pool", *PAIR * 6, "pool", *PAIR * 2],
        [0] + [1] * 4 + [2] * 5 + [3] * 13 + [4] * 5,
        [32] * 5 + [16] * 5 + [8] * 13 + [4] * 5,
    ),
}


def cut_points(model: str) -> pd.DataFrame:
    kinds, stages, sizes = MODELS[model]
    index = np.arange(len(kinds))
    named = {"model": model, "index": index, "name": [f"block{i}" for i in index]}
    shaped = {"channels": 64, "height": sizes, "width": sizes}
    depth = index / index[-1]
    return pd.DataFrame({**named, "kind": kinds, "stage": stages, "depth": depth, **shaped})


def variances(model: str, values: list[float]) -> pd.DataFrame:
    value = np.asarray(values, dtype=float)
    interval = {"ci_low": value * 0.95, "ci_high": value * 1.05}
    return cut_points(model).assign(images=100, variance=value, **interval)


@pytest.fixture
def table() -> pd.DataFrame:
    resnet = variances("resnet", [0.1 + 0.05 * i for i in range(17)])
    vit = variances("vit", [0.02 + 0.003 * i for i in range(25)])
    return pd.concat([vit, resnet]).sample(frac=1, random_state=0)


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Split:
    return shapes(tmp_path_factory.mktemp("split") / "test.safetensors", 20)


@pytest.fixture(scope="session", params=["resnet_50", "vit_ti"])
def golden_latents(
    golden: Golden, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> GoldenLatents:
    """The latents of a golden network, which take seconds: once for all measures of them."""
    return latents.golden_latents(golden, request.param, tmp_path_factory.mktemp("golden"))
