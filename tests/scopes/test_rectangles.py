from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.spatial.distance import cdist
from torch import Tensor, nn

import vitscope
from tests.helpers.kinds import timm
from tests.measures.fourier.test_spectra import long_log_amplitudes
from tests.scopes.networks import Convolutions, labels, network
from vitscope.errors import VitscopeError
from vitscope.scopes.scope import Scope
from vitscope.studies.loading import load_study

SIZE, COUNT = (16, 24), 12
LOSS = {"weight_decay": 0.05, "augment": "none"}
# As little as every measure can do with.
FEW = {
    "bootstrap": {"resamples": 100},
    "frequency_noise": {"seeds": 1},
    "hessian": {"top": 1, "tolerance": 0.5, "density_probes": 1, "density_steps": 5},
    "landscape": {"points": 3},
    "occlusion": {"draws": 1},
    "robustness": {"severities": [3]},
}


def swin() -> nn.Module:
    keywords = {"img_size": SIZE, "patch_size": 2, "window_size": 4, "embed_dim": 8}
    torch.manual_seed(0)
    return timm("swin_tiny_patch4_window7_224", **keywords, depths=(2, 1), num_heads=(1, 2)).eval()


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "cnn": lambda: network(Convolutions),
    "vit": network,
    "swin": swin,
}


def pixels() -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 256, (COUNT, 3, *SIZE), dtype=torch.uint8, generator=generator)


def looked_at(name: str) -> Scope:
    own = {"mean": 0.5, "std": 0.25, "loss": LOSS, "analysis": FEW}
    return vitscope.look(NETWORKS[name](), pixels(), labels(COUNT), **own)


@pytest.fixture(scope="module")
def scopes() -> dict[str, Scope]:
    return {name: looked_at(name) for name in NETWORKS}


@pytest.mark.parametrize("name", NETWORKS)
def test_every_kind_of_figure_is_drawn(scopes: dict[str, Scope], name: str) -> None:
    for kind in scopes[name].kinds():
        assert scopes[name].plot(kind).axes, kind


@pytest.mark.parametrize("name", NETWORKS)
def test_values_of_maps(scopes: dict[str, Scope], name: str) -> None:
    scope = scopes[name]
    maps = [each for _, each in scope.maps()]
    assert maps[0].shape[-1] * 2 == maps[0].shape[-2] * 3
    variance = [each.var(axis=(2, 3), ddof=1).mean() for each in maps]
    found = scope.table("feature_variance")["variance"]
    np.testing.assert_allclose(found, variance, rtol=1e-5)
    rows = scope.table("fourier").query("measure == 'diagonal'")
    diagonal = [long_log_amplitudes(each).mean(axis=0) for each in maps]
    np.testing.assert_allclose(rows["log_amplitude"], np.concatenate(diagonal), atol=1e-4)
    assert rows.groupby("index")["frequency"].max().eq(1).all()
    # Of rotated maps, all but their sides are the same.
    turned = np.concatenate([long_log_amplitudes(each.swapaxes(2, 3)).mean(0) for each in maps])
    np.testing.assert_allclose(np.concatenate(diagonal), turned, atol=1e-12)


def weights_of(model: nn.Module) -> list[np.ndarray]:
    """Return what each block of a transformer attends with, as torch's own module says it."""
    found = []
    with torch.no_grad():
        tokens = model.patches((pixels() / 255 - 0.5) / 0.25).flatten(2).transpose(1, 2)
        for block in model.blocks:
            each = block.norm(tokens)
            _, weights = block.attention(each, each, each, average_attn_weights=False)
            found.append(weights.numpy())
            tokens = block(tokens)
    return found


def test_attention(scopes: dict[str, Scope]) -> None:
    weights = weights_of(network())
    middles = 4 * np.stack(np.indices((4, 6)), -1).reshape(-1, 2) + 2
    distance = [(each * cdist(middles, middles)).sum(-1).mean((0, 2)) for each in weights]
    table = scopes["vit"].table("attention").dropna(subset="head").sort_values(["index", "head"])
    np.testing.assert_allclose(table["distance"], np.concatenate(distance), rtol=1e-5)
    joint = np.eye(24)
    for each in weights:
        step = each.mean(axis=1) + np.eye(24)
        joint = step / step.sum(-1, keepdims=True) @ joint
    row = joint.mean(axis=1)
    rollout = scopes["vit"].table("attention_rollout").set_index("image")["rollout"]
    sides = scopes["vit"].table("attention_rollout")[["height", "width"]]
    assert {*sides.to_numpy().flat} == {4, 6}
    for image, values in rollout.items():
        np.testing.assert_allclose(values, row[image] / row[image].max(), rtol=1e-4)
    # The query in the last quarter, of four rows and six columns.
    maps = scopes["vit"].table("attention_maps").query("shows == 'queries'")
    of_image = maps[maps["image"] == maps["image"].iloc[0]]
    queries = of_image[["query_row", "query_column"]].to_numpy().tolist()
    assert queries == [[2, 6], [2, 18], [10, 6], [10, 18]]
    last = of_image.iloc[-1]
    np.testing.assert_allclose(last["weights"], weights[-1][last["image"], 0, 16], rtol=1e-5)


def test_pictures_and_folders_have_their_own_size(tmp_path: Path) -> None:
    for index, image in enumerate(pixels()):
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(tmp_path / f"{index:02}.png")
    pictures = [Image.open(path) for path in sorted(tmp_path.iterdir())]
    expected = looked_at("cnn").table("feature_variance")["variance"]
    for images, size in ((pictures, None), (pictures, SIZE), (tmp_path, [16, 24])):
        scope = vitscope.look(network(Convolutions), images, mean=0.5, std=0.25, image_size=size)
        np.testing.assert_array_equal(scope.table("feature_variance")["variance"], expected)
    with pytest.raises(VitscopeError, match=r"look: image_size: found \[16\], allowed: at least 2"):
        vitscope.look(network(Convolutions), pictures, mean=0, std=1, image_size=(16,))
    more = [*pictures, Image.new("RGB", (30, 20))]
    with pytest.raises(VitscopeError, match=r"different shapes.*with image_size="):
        vitscope.look(network(Convolutions), more, mean=0, std=1)


def test_a_saved_study_has_both_sides(scopes: dict[str, Scope], tmp_path: Path) -> None:
    file = scopes["cnn"].save(tmp_path / "saved")
    study = load_study(file)
    (model,) = study.models.values()
    assert model.checkpoint["path"] == str(tmp_path / "saved/weights.safetensors")
    assert {each.name for each in tmp_path.rglob("*")} >= {"images.npz", "weights.safetensors"}
    assert [*tmp_path.iterdir()] == [file.parent]
    assert study.data["images"].image_size == [16, 24]
    assert study.data["images"].pixels == 16 * 24
