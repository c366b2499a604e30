"""Class maps: against class activation maps in closed form, and plain hooks of autograd."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.helpers.attending import sharpened
from tests.helpers.networks import mini
from tests.helpers.refusals import refusal
from tests.helpers.splits import on_model
from tests.helpers.tiers import some_of
from tests.measures.attention.test_numbers import ALL, attention, grid
from vitscope.data.split import Split
from vitscope.measures.class_maps.compute import Explainer, Map, measure_class_maps
from vitscope.measures.class_maps.measure import CLASS_MAPS_TABLE, METHODS
from vitscope.measures.rollout import Rollout
from vitscope.networks.building.networks import plain_attention
from vitscope.networks.finding.cut_points import CutPoint, Layout


def image(seed: int = 0) -> Tensor:
    return torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(seed))


def at(module: str) -> CutPoint:
    return CutPoint(module, "conv", 1, module, "output", Layout("nchw"))


def pooled(seed: int = 0) -> nn.Sequential:
    """A network whose classes are linear in the mean of its last map."""
    torch.manual_seed(seed)
    layers = nn.Conv2d(3, 8, 3, 4, 1), nn.ReLU(inplace=True)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)).eval()


def maps_of(model: nn.Module, split: Split, points: list[CutPoint], **chosen) -> dict[str, Map]:
    explainer = Explainer(on_model(model, split, cut_points=points), **chosen)
    _, _, maps = explainer.explain(image())
    return {each.method: each for each in maps}


def over_largest(values: Tensor) -> Tensor:
    return values / values.max()


@pytest.mark.parametrize("number", [None, 0, 7])
def test_behind_a_mean_over_positions_it_is_a_class_activation_map(images, number) -> None:
    """Zhou et al. 2016: the channels of the last map, weighted as the class weights them."""
    model = pooled()
    found = maps_of(model, images, [at("0"), at("1"), at("2")], of_class=number)
    with torch.no_grad():
        features = model[:2](image())[0].double()
        shown = int(model(image()).argmax()) if number is None else number
        activation = torch.einsum("c,chw->hw", model[4].weight[shown].double(), features)
    # The last of several positions, behind which there is one.
    assert [*found] == ["grad_cam", "layer_cam"]
    assert found["grad_cam"].of == "1"
    expected = over_largest(activation.relu())
    torch.testing.assert_close(found["grad_cam"].values, expected, rtol=1e-5, atol=1e-6)


def test_what_is_changed_in_place_later_is_as_it_was(images) -> None:
    """The map before a ReLU that overwrites it, and the gradient before it."""
    model = pooled()
    found = maps_of(model, images, [at("0"), at("1")], cut_point="0")["grad_cam"]
    before = model[0](image()).detach().requires_grad_()
    logits = model[2:](before.relu())
    (gradient,) = torch.autograd.grad(logits[0, logits.argmax()], before)
    weights = gradient.mean((2, 3), keepdim=True)
    expected = over_largest((weights * before.detach()).sum(1)[0].relu())
    torch.testing.assert_close(found.values, expected.double(), rtol=1e-5, atol=1e-6)
    assert found.of == "0"


# Where it reads by default; a module that has this for its input or output, how the last two
# dimensions are a map, and how many tokens come first.
PLACES = {
    "resnet": ("layer4.1", "layer4.1", "output", 0),
    "vit_global": ("blocks.2.mlp", "blocks.3", "input", 1),
    "vit_gap": ("blocks.3.mlp", "blocks.3", "output", 0),
    "swin": ("layers.3.blocks.1.mlp", "layers.3.blocks.1", "output", 0),
}


def as_map(name: str, tensor: Tensor, prefix: int) -> Tensor:
    if tensor.ndim == 3:
        tokens = tensor[0, prefix:]
        side = int(len(tokens) ** 0.5)
        return tokens.T.reshape(-1, side, side)
    return tensor[0].permute(2, 0, 1) if name == "swin" else tensor[0]


@pytest.mark.parametrize("name", some_of([*PLACES], "vit_global"))
def test_of_every_family_it_is_what_plain_hooks_give(images, name) -> None:
    model, points = mini(name)
    sharpened(model)
    found = maps_of(model, images, points)
    of, module, side, prefix = PLACES[name]
    assert found["grad_cam"].of == found["layer_cam"].of == of
    kept: list[Tensor] = []

    def keep(_: nn.Module, args: tuple[Tensor, ...], output: Tensor | None = None) -> None:
        kept.append(args[0] if output is None else output)
        kept[0].retain_grad()

    hooked = model.get_submodule(module)
    add = hooked.register_forward_pre_hook if side == "input" else hooked.register_forward_hook
    with torch.enable_grad():
        add(keep)
        logits = model(image().requires_grad_())
        logits[0, logits.argmax()].backward()
    assert kept[0].grad is not None
    features, gradients = (as_map(name, each, prefix) for each in (kept[0].detach(), kept[0].grad))
    for method, weights in {
        "grad_cam": gradients.mean((1, 2), keepdim=True),
        "layer_cam": gradients.clamp(min=0),
    }.items():
        expected = over_largest((weights * features).sum(0).relu()).double()
        torch.testing.assert_close(found[method].values, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["vit_global", "vit_gap"])
def test_the_rollout_is_the_rule_of_chefer(images, name) -> None:
    """R = R + mean((A * dA)+) R, with a class token and without."""
    model, points = mini(name)
    sharpened(model)
    found = maps_of(model, images, points, of_class=3)
    seen: list[Tensor] = []

    def keep(_: nn.Module, args: tuple[Tensor, ...]) -> None:
        args[0].retain_grad()
        seen.append(args[0])

    drops = [block.attn.attn_drop for block in model.blocks]
    with plain_attention(model), torch.enable_grad():
        hooks = [each.register_forward_pre_hook(keep) for each in drops]
        model(image().requires_grad_())[0, 3].backward()
    for hook in hooks:
        hook.remove()
    relevance = torch.eye(seen[0].shape[-1], dtype=torch.float64)
    identity = relevance.clone()
    for weights in seen:
        assert weights.grad is not None
        mean = (weights * weights.grad)[0].detach().double().relu().mean(0)
        relevance = relevance + mean @ relevance
    with_class = name == "vit_global"
    row = relevance[0, 1:] if with_class else (relevance - identity).mean(0)
    rolled = found["gradient_rollout"]
    assert rolled.of == ("class token" if with_class else "mean of queries")
    expected = over_largest(row).reshape(8, 8)
    torch.testing.assert_close(rolled.values, expected, rtol=1e-4, atol=1e-5)
    # The other one is of no class, this one is.
    other = maps_of(model, images, points, of_class=4)
    torch.testing.assert_close(other["rollout"].values, found["rollout"].values)
    assert not torch.allclose(other["gradient_rollout"].values, rolled.values, atol=0.01)


def test_where_a_map_is_pooled_between_what_is_its_own_is_left_out() -> None:
    rollout = Rollout([attention(ALL[None]), attention(grid(2, 2)[None])], of_relevance=True)
    generator = torch.Generator().manual_seed(0)
    # As small as gradients of large networks are.
    first, second = (1e-9 * torch.rand(1, n, n, generator=generator) for n in (16, 4))
    rollout.add(0, first)
    rollout.add(1, second)
    row, column = np.divmod(np.arange(16), 4)
    covers = (np.arange(4)[:, None] == 2 * (row // 2) + column // 2) / 4
    one, two = first[0].double().numpy(), second[0].double().numpy()
    expected = (covers @ one + two @ covers + two @ covers @ one).mean(0)
    found = rollout.result()[1]
    np.testing.assert_allclose(found, expected / expected.max(), rtol=1e-5)


class Attends(nn.Module):
    """One attention, which knows no gradient of its softmax where it is `fixed`."""

    def __init__(self, fixed: bool = False, constant: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.head = nn.Conv2d(3, 8, 8, 8), nn.Linear(8, 10)
        self.qkv = nn.Linear(8, 24)
        self.fixed, self.constant = fixed, constant

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.embed(images).flatten(2).transpose(1, 2)
        query, key, value = self.qkv(tokens).chunk(3, -1)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.fixed):
            weights = (query @ key.transpose(1, 2)).softmax(-1)
        logits = self.head((tokens + weights @ value).mean(1))
        return logits.detach() if self.constant else logits


TOKENS = CutPoint("embed", "stem", 0, "embed", "output", Layout("nchw"))


def test_attention_without_a_gradient_has_no_such_rollout(images) -> None:
    given = on_model(Attends(fixed=True), images, cut_points=[TOKENS])
    explainer = Explainer(given)
    for _ in range(2):
        _, _, found = explainer.explain(image())
        assert [each.method for each in found] == ["grad_cam", "layer_cam", "rollout"]
    (warning,) = given.warnings
    assert "so that there is no gradient rollout" in warning
    _, _, both = Explainer(on_model(Attends(), images, cut_points=[TOKENS])).explain(image())
    assert [each.method for each in both] == [*METHODS]


def test_the_table(images, tmp_path: Path) -> None:
    model = Attends()
    given = on_model(model, images, cut_points=[TOKENS])
    explained = {"cut_point": -1, "of_class": 2}
    table = measure_class_maps(given, explained, {"shown": 2, "images": 10, "seed": 4})
    CLASS_MAPS_TABLE.write(table, tmp_path / "table.parquet")
    back = CLASS_MAPS_TABLE.read(tmp_path / "table.parquet")
    assert back["method"].tolist() == [*METHODS] * 2
    assert back["image"].nunique() == 2
    assert set(back["class_name"]) == {images.classes[2]}
    assert back.loc[back["method"] == "grad_cam", "of"].unique() == ["embed"]
    assert (back["values"].map(len) == back["height"] * back["width"]).all()
    # A map of Grad-CAM may have no positive part.
    assert back["values"].map(max).isin([0, 1]).all()
    assert back["values"].map(min).min() >= 0
    row = back["image"].iloc[0]
    batch = images.normalize([row], given.settings["mean"], given.settings["std"])
    with torch.no_grad():
        probability = float(model(batch)[0].softmax(0)[2])
    assert back["confidence"].iloc[0] == pytest.approx(probability, rel=1e-4)


ALLOWED = "allowed for models.net: -2 to 1, or the name of a cut point."
LISTED = "`vitscope check` lists them."


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"cut_point": "11"}, f"cut_point: found '11', {ALLOWED} Did you mean '1'? {LISTED}"),
        ({"cut_point": 2}, f"cut_point: found '2', {ALLOWED} {LISTED}"),
        (
            {"of_class": 10},
            "of_class: found 10, allowed for models.net, which tells 10 classes apart: 0 to 9, or "
            "null.",
        ),
    ],
)
def test_what_is_not_there_is_refused(images, chosen, sentence) -> None:
    given = on_model(pooled(), images, cut_points=[at("0"), at("1")])
    assert refusal(Explainer, given, **chosen) == f"analysis.class_maps.{sentence}"


def test_networks_without_a_map_or_gradients_are_refused(images) -> None:
    assert refusal(maps_of, pooled(), images, [at("2")]) == (
        "models.net: the score of a class depends on no cut point of more than one position, so "
        "that there is no map of it: leave class_maps, deletion and insertion out."
    )
    assert refusal(maps_of, Attends(constant=True), images, [TOKENS]) == (
        "The Attends computes its logits without gradients, so that nothing tells what they depend "
        "on: leave class_maps, deletion and insertion out."
    )
