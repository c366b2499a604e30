"""Interventions, against forward hooks that are written by hand here, on drawn networks."""

import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import vitscope
from tests.drawn import build, draw, truth_of
from tests.drawn.additions import PLAIN
from tests.drawn.attention import HEADS, Attend
from tests.drawn.modules import Drawn, UnitModule
from tests.drawn.truth import Truth, logits_of
from tests.helpers.refusals import refusal
from tests.helpers.tiers import some_of
from tests.scopes.networks import looked_at
from vitscope.networks.building.networks import without_fast_path
from vitscope.networks.running.intervening import intervening
from vitscope.scopes.scope import Scope

# Of the largest logit, in a pass of all images; in batches of a table, sums are of another order.
CLOSE, ROUNDED = 1e-6, 1e-4
ANALYSIS = {"bootstrap": {"resamples": 100}, "batch_size": 16}
# A key more than values, or values that are no rows of the weights: their heads are refused.
UNPROVED = ("sink", "latents", "channel", "mixed keys", "linear", "sigmoid")
HOW: list[dict[str, Any]] = [
    {"how": "zero"},
    {"how": "mean"},
    {"how": "scale", "factor": -0.5},
    {"how": torch.tanh},
]

Hook = Callable[[Tensor], Tensor]


def changed_by_hand(how: Any, factor: float | None = None) -> Hook:
    """Return what becomes of the values of all images."""
    if how == "zero":
        return lambda values: 0 * values
    if how == "scale":
        return lambda values: float(factor or 0) * values
    if how == "mean":
        return lambda values: values.double().mean(0, keepdim=True).to(values).expand_as(values)
    return lambda values: how(values)


@contextmanager
def hooked(module: nn.Module, call: int, change: Hook, of_input: bool = False) -> Iterator[None]:
    """Change what a module returns, or takes, in one of its calls in a pass."""
    calls = Counter[str]()

    def work(values: Tensor) -> Tensor | None:
        calls["all"] += 1
        return change(values) if calls["all"] - 1 == call else None

    if of_input:
        handle = module.register_forward_pre_hook(lambda _, args: work(args[0]))
    else:
        handle = module.register_forward_hook(lambda _, args, output: work(output))
    try:
        yield
    finally:
        handle.remove()


@torch.no_grad()
def logits_by_hand(
    network: Drawn,
    images: Tensor,
    calls: Sequence[tuple[nn.Module, int]],
    change: Hook,
    of_input: bool = False,
) -> Tensor:
    with without_fast_path(), ExitStack() as stack:
        for module, call in calls:
            stack.enter_context(hooked(module, call, change, of_input))
        return logits_of(network(images))


@torch.no_grad()
def logits_of_scope(scope: Scope, network: Drawn, images: Tensor) -> Tensor:
    with intervening(network, scope._maker.interventions):
        return logits_of(network(images))


def assert_alike(
    scope: Scope, network: Drawn, images: Tensor, labels: Tensor, true: Tensor
) -> None:
    got = logits_of_scope(scope, network, images)
    assert float((got - true).abs().max()) <= CLOSE * max(1.0, float(true.abs().max()))
    nll = torch.nn.functional.cross_entropy(true, labels, reduction="none").numpy()
    np.testing.assert_allclose(scope.table("predictions")["nll"], nll, rtol=ROUNDED, atol=ROUNDED)


def sums_at_cut_points(scope: Scope, truth: Truth) -> list[tuple[int, int]]:
    """Return the indices of sums and of their cut points, if all are found."""
    points = scope._maker.points
    joined = [index for index, point in enumerate(points) if point.join is not None]
    return [*enumerate(joined)] if len(joined) == len(truth.sums) else []


def ends_of_branch(unit: nn.Module) -> list[nn.Module]:
    """Return the modules whose outputs are, together, all of the branch; none if there are not."""
    if not isinstance(unit, UnitModule) or unit.spec.add not in PLAIN or unit.spec.inside:
        return []
    if unit.where in ("both", "branch"):
        # The norm stands behind each term.
        end = unit.second if unit.where == "both" else unit.norm
        return [end] if len(unit.branches) == 1 else []
    return [*unit.branches]


@pytest.mark.parametrize("seed", some_of(range(40), 9))
def test_a_drawn_network_is_that_of_hooks_by_hand(seed: int) -> None:
    network, images, labels = build(draw(seed))
    truth = truth_of(network, images)
    if any(what == "random" for what, _ in truth.unclear):
        return
    scope = vitscope.look(network, images.clone(), labels, analysis=ANALYSIS)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    how = HOW[seed % len(HOW)]
    given = scope, network, images, labels
    compared = compare_heads(*given, truth, HOW[2 * (seed % 2)])
    pairs = sums_at_cut_points(scope, truth)
    for number, index in pairs[:: max(1, len(pairs) // 2)]:
        compared += compare_branch(*given, truth, number, index, how)
        compared += compare_stream(*given, truth, number, index, how)
    assert compared or not pairs
    after = network.state_dict()
    assert all(torch.equal(each, after[name]) for name, each in before.items() if name != "passes")


Given = tuple[Scope, Drawn, Tensor, Tensor]


def compare_branch(
    scope: Scope, network: Drawn, images: Tensor, labels: Tensor, truth: Truth, number: int,
    index: int, how: dict[str, Any],
) -> bool:  # fmt: skip
    units = [network.get_submodule(each.unit) for each in truth.sums[: number + 1]]
    ends = ends_of_branch(units.pop())
    if not ends or (callable(how["how"]) and len(ends) > 1):
        return False
    call = sum(ends[0] in ends_of_branch(each) for each in units)
    true = logits_by_hand(network, images, [(end, call) for end in ends], changed_by_hand(**how))
    assert_alike(scope.intervene(index, **how), network, images, labels, true)
    return True


def compare_stream(
    scope: Scope, network: Drawn, images: Tensor, labels: Tensor, truth: Truth, number: int,
    index: int, how: dict[str, Any],
) -> bool:  # fmt: skip
    """Change some tokens, or the class token where there is one."""
    each = truth.sums[number]
    if network.blocks[int(each.unit.split(".")[1])].how == "inline":
        return False
    place, change = each.place, changed_by_hand(**how)
    front, last = place.front > 0, (place.height - 1, place.width - 2)
    at = last[1] * place.height + last[0] if place.columns else last[0] * place.width + last[1]
    token = 0 if front and number % 2 else place.front + at
    channels = [1, 3]

    def of_token(values: Tensor) -> Tensor:
        tokens = place.to_tokens(values).clone()
        one = tokens[:, [token]]
        one[:, :, channels] = change(one[:, :, channels])
        tokens[:, [token]] = one
        return place.from_tokens(tokens)

    call = sum(other.unit == each.unit for other in truth.sums[:number])
    module = network.get_submodule(each.unit)
    true = logits_by_hand(network, images, [(module, call)], of_token)
    tokens = "class" if token == 0 and front else [last]
    other = scope.intervene(index, of="stream", tokens=tokens, channels=channels, **how)
    assert_alike(other, network, images, labels, true)
    return True


def compare_heads(
    scope: Scope, network: Drawn, images: Tensor, labels: Tensor, truth: Truth, how: dict[str, Any]
) -> int:
    compared = 0
    for attention in scope._maker.attention.attentions:
        module = network.get_submodule(attention.name.partition("#")[0])
        index = attention.index
        if not isinstance(module, Attend) or "#" in attention.name:
            continue
        calls = sum(each.module == attention.name for each in truth.attended)
        if index == len(scope.table("blocks")):
            assert "allowed" in refusal(scope.intervene, index, of="heads", heads=[1], **how)
            continue
        if attention.mixed or module.how in UNPROVED:
            assert "heads: " in refusal(scope.intervene, index, of="heads", heads=[1], **how)
            continue
        other = scope.intervene(index, of="heads", heads=[1], **how)
        change = changed_by_hand(**how)

        def of_head(values: Tensor, change: Hook = change) -> Tensor:
            first, second = values.chunk(HEADS, -1)
            return torch.cat([first, change(second)], -1)

        assert calls == 1
        true = logits_by_hand(network, images, [(module.project, 0)], of_head, True)
        assert_alike(other, network, images, labels, true)
        compared += 1
    return compared


@pytest.fixture(scope="module")
def scope() -> Scope:
    return looked_at(name="mine")


def test_a_lesion_is_an_intervention(scope: Scope) -> None:
    """The same images, found or not, and so the same change in each resample of the images."""
    lesions = scope.table("lesion").set_index("index")
    assert len(lesions) > 2
    for index, lesion in lesions.iterrows():
        other = scope.intervene(int(index))
        predictions = other.table("predictions")
        found = predictions["prediction"] == scope.table("predictions")["label"]
        assert found.mean() == lesion["accuracy"]
        # What is zero already has no lesion left.
        assert other.table("lesion").set_index("index")["change"][index] == 0


def test_changes_are_counted_in_pairs(scope: Scope) -> None:
    point = scope.blocks["name"][2]
    other = scope.intervene(point, "scale", factor=0.5)
    changes = vitscope.compare({"whole": scope, "half": other}).changes("feature_variance")
    one, two = (each.table("feature_variance", resamples=True) for each in (scope, other))
    np.testing.assert_array_equal(changes["change"], two["variance"] - one["variance"])
    assert (changes["change"][:2] == 0).all()
    assert (changes["change"][2:] != 0).all()
    last = np.subtract(two["variance_resampled"].iloc[-1], one["variance_resampled"].iloc[-1])
    ends = changes[["ci_low", "ci_high"]].iloc[-1]
    np.testing.assert_allclose(ends, np.percentile(last, (2.5, 97.5)), rtol=1e-6)
    assert {*changes["model"]} == {"half"}


def test_others_take_the_place_of_each_image_and_never_itself(scope: Scope) -> None:
    point = scope.blocks["name"].iloc[-1]
    (maps,) = [each for name, each in scope.maps() if name == point]
    other = scope.intervene(point, "resample", of="stream")
    (found,) = [each for name, each in other.maps() if name == point]
    same = np.array([[np.array_equal(a, b) for b in maps] for a in found])
    assert (same.sum(1) == 1).all()
    assert not same.diagonal().any()


def test_interventions_follow_one_another_and_are_pickled(scope: Scope) -> None:
    names = [*scope.blocks["name"]]
    both = scope.intervene(names[1]).intervene(names[2], "mean")
    assert both.members[0].label == f"mine, zero branch {names[1]}, mean branch {names[2]}"
    again = pickle.loads(pickle.dumps(both))
    for each in (both, again):
        maps = dict(each.maps())
        np.testing.assert_array_equal(maps[names[1]], maps[names[0]])
    np.testing.assert_array_equal(*(each.table("predictions")["nll"] for each in (both, again)))


def test_what_cannot_be_changed_is_refused(scope: Scope) -> None:
    name = scope.blocks["name"][1]
    ask = scope.intervene
    assert "nothing" in refusal(ask, name, "scale")
    assert "allowed: zero, mean, resample, scale" in refusal(ask, name, "nought")
    assert f"Did you mean '{name}'" in refusal(ask, name + "x")
    assert "of='stream'" in refusal(ask, 0)
    assert "row from 0" in refusal(ask, name, of="stream", tokens=[(99, 0)])
    assert "channels: found [999]" in refusal(ask, name, of="stream", channels=[999])
    other = ask(name, lambda values: values[:, :1])
    assert "a tensor of the same shape" in refusal(other.table, "predictions")
    assert "Save the scope of the network as it is" in refusal(ask(name).save, "folder")
    assert "takes gradients" in refusal(ask(name).table, "class_maps")
    assert "class_maps" not in ask(name).available()
