"""Interventions as a notebook or a study asks for them: a part of a network, and its new values."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from vitscope.data.split import select
from vitscope.errors import VitscopeError, nearest, quoted
from vitscope.networks.attention.finding import find_attention
from vitscope.networks.attention.reading import Attention
from vitscope.networks.finding.cut_points import CutPoint
from vitscope.networks.running.intervening import (
    Change,
    Intervention,
    Of,
    Target,
    call_own_change,
    digest_images,
    read_target,
    refuse_unread_heads,
    replace_by_mean,
    replace_by_others,
    scale_values,
    token_indices,
    zero_values,
)

How = Literal["zero", "mean", "resample", "scale"] | Callable[[Tensor], Tensor]
Tokens = Literal["class", "registers", "positions"] | Sequence[tuple[int, int]]
HOW = ("zero", "mean", "resample", "scale")
# "resample" takes the values of one of so many images.
POOL = 64


class AskedIntervention(NamedTuple):
    """An intervention as it is asked for."""

    at: str | int
    how: Any
    of: Of
    heads: Sequence[int] | None
    tokens: Any
    channels: Sequence[int] | None
    factor: float | None

    def __str__(self) -> str:
        how = self.how if isinstance(self.how, str) else getattr(self.how, "__name__", "function")
        what = "heads " + ", ".join(map(str, self.heads)) if self.heads else self.of
        where = "" if self.tokens is None else f", tokens {self.tokens}"
        where += "" if self.channels is None else f", channels {[*self.channels]}"
        return f"{how} {'' if self.factor is None else f'{self.factor:g} '}{what} {self.at}{where}"


class ShownImages(Protocol):
    """What a network is shown: a split, or images that are in memory."""

    def __len__(self) -> int: ...

    def batches(
        self, rows: Sequence[int], batch_size: int, mean: Sequence[float], std: Sequence[float]
    ) -> Iterator[Tensor]: ...


class Running(NamedTuple):
    """A network on its device, as it was intervened before, and the images that it is shown.

    `settings` describe its input. The images are those in `rows` of `shown`, by their numbers.
    """

    network: nn.Module
    settings: Mapping[str, Any]
    shown: ShownImages
    rows: Sequence[int]
    batch_size: int
    device: torch.device
    # Height and width of the map at each cut point.
    map_sizes: Sequence[tuple[int, int]]
    before: Sequence[Intervention]

    @property
    def images(self) -> int:
        return len(self.rows)

    def batches(self, numbers: Sequence[int]) -> Iterator[Tensor]:
        rows = [self.rows[each] for each in numbers]
        mean, std = self.settings["mean"], self.settings["std"]
        for batch in self.shown.batches(rows, self.batch_size, mean, std):
            yield batch.to(self.device)

    def read(self, target: Target, rows: Sequence[int]) -> Iterator[tuple[Tensor, list[Tensor]]]:
        return read_target(self.network, target, self.batches(rows), self.before)


def describe_study_interventions(
    network: nn.Module,
    settings: Mapping[str, Any],
    points: Sequence[CutPoint],
    map_sizes: Sequence[tuple[int, int]],
    images: ShownImages,
    device: torch.device,
) -> list[Intervention]:
    """Return what a study asks for in the settings of a network, each after those before it.

    Means are those of as many images of the split as the model is measured on.
    """
    asked = settings["interventions"]
    network.eval().to(device)
    by_heads = any(each["of"] == "heads" for each in asked["changes"])
    attentions = find_attention(network, settings, points).attentions if by_heads else []
    rows = select(len(images), min(len(images), asked["images"]), asked["seed"]).tolist()
    shown = settings, images, rows, asked["batch_size"], device, map_sizes
    made: list[Intervention] = []
    for number, each in enumerate(asked["changes"]):
        running = Running(network, *shown, made)
        try:
            change = describe_intervention(AskedIntervention(**each), points, attentions, running)
        except VitscopeError as error:
            raise VitscopeError(f"interventions.{number}: {error}") from error
        made.append(change)
    return made


def describe_intervention(
    asked: AskedIntervention,
    points: Sequence[CutPoint],
    attentions: Sequence[Attention],
    running: Running,
) -> Intervention:
    """Return an intervention, with what it replaces values by; refuse one that cannot be made."""
    if not callable(asked.how) and asked.how not in HOW:
        raise VitscopeError(
            f"how: found {quoted(asked.how)}, allowed: {', '.join(HOW)}, or a function."
            f"{nearest(str(asked.how), HOW)}"
        )
    if (asked.factor is None) == (asked.how == "scale"):
        raise VitscopeError("factor: how='scale' takes a factor, and nothing else does.")
    target = _find_target(asked, points, attentions, running)
    return Intervention(target, tuple(_changes(asked, target, running)))


def _find_target(
    asked: AskedIntervention,
    points: Sequence[CutPoint],
    attentions: Sequence[Attention],
    running: Running,
) -> Target:
    numbers, names = range(-len(points), len(points)), [point.name for point in points]
    if asked.at not in numbers and asked.at not in names:
        raise VitscopeError(
            f"at: found {quoted(str(asked.at))}, allowed: {numbers[0]} to {numbers[-1]}, or the "
            f"name of a cut point.{nearest(str(asked.at), names)}"
        )
    point = points[asked.at if isinstance(asked.at, int) else names.index(asked.at)]
    if (asked.heads is not None) != (asked.of == "heads"):
        raise VitscopeError("heads: of='heads' takes a list of heads, and nothing else does.")
    if asked.of == "heads":
        return _target_of_heads(asked, point, points.index(point), attentions, running)
    if asked.of == "branch" and point.join is None:
        raise VitscopeError(
            f"at: no branch joins the stream at {quoted(point.name)}: take of='stream'."
        )
    if asked.of not in ("branch", "stream"):
        raise VitscopeError(f"of: found {quoted(asked.of)}, allowed: branch, stream, heads.")
    whole = Target(point, asked.of)
    if asked.tokens is None and asked.channels is None:
        return whole
    return _target_in_tensor(asked, whole, points.index(point), running)


def _target_in_tensor(
    asked: AskedIntervention, whole: Target, index: int, running: Running
) -> Target:
    size = running.map_sizes[index]
    _, operands = next(running.read(whole, [0]))
    layout, (count, channels) = whole.layout, operands[0].shape[1:]
    if len(operands) > 1 or layout is None or count != (layout.count or size[0] * size[1]):
        raise VitscopeError(
            f"tokens, channels: the {asked.of} at {quoted(asked.at)} is added in several parts, or "
            f"is the same for all tokens: take all of it."
        )
    chosen: dict[str, Any] = {}
    if asked.tokens is not None:
        chosen["tokens"] = tuple(token_indices(layout, size, count, asked.tokens))
    if asked.channels is not None:
        chosen["channels"] = tuple(_check_numbers("channels", asked.channels, channels))
    return replace(whole, **chosen)


def _target_of_heads(
    asked: AskedIntervention,
    point: CutPoint,
    index: int,
    attentions: Sequence[Attention],
    running: Running,
) -> Target:
    found = [each for each in attentions if each.index == index]
    if len(found) != 1:
        raise VitscopeError(
            f"heads: found {len(found)} attentions that can be read between "
            f"{quoted(point.name)} and the cut point before it, allowed: one."
        )
    if asked.tokens is not None or asked.channels is not None:
        raise VitscopeError("tokens, channels: heads are changed as a whole.")
    refuse_unread_heads(
        running.network, found[0], next(running.batches(range(min(2, running.images))))
    )
    heads = _check_numbers("heads", asked.heads or (), found[0].heads)
    return Target(point, "heads", found[0], tuple(heads))


def _check_numbers(key: str, numbers: Sequence[int], count: int) -> list[int]:
    wrong = [each for each in numbers if each not in range(count)]
    if wrong or not len(numbers):
        raise VitscopeError(
            f"{key}: found {[*numbers]}, allowed: numbers from 0 to {count - 1}, one or more."
        )
    return [*dict.fromkeys(numbers)]


def _changes(asked: AskedIntervention, target: Target, running: Running) -> Iterator[Change]:
    """Yield one change, or one for each operand of the branch, which together are all of it."""
    if asked.how == "zero":
        yield zero_values
    elif asked.factor is not None:
        yield partial(scale_values, asked.factor)
    elif asked.how == "mean":
        sums: list[Any] = []
        for _, operands in running.read(target, range(running.images)):
            of_batch = [each.double().sum(0, keepdim=True) for each in operands]
            sums = [a + b for a, b in zip(sums, of_batch, strict=True)] if sums else of_batch
        yield from (partial(replace_by_mean, each / running.images) for each in sums)
    elif asked.how == "resample":
        yield from _resampling(target, running)
    else:
        _, operands = next(running.read(target, [0]))
        if len(operands) > 1:
            raise VitscopeError(
                f"how: the branch at {quoted(target.point.name)} is added in {len(operands)} "
                f"parts, which a function cannot change as a whole: take {', '.join(HOW)}."
            )
        yield partial(call_own_change, asked.how)


def _resampling(target: Target, running: Running) -> Iterator[Change]:
    rows = select(running.images, min(POOL, running.images), seed=0).tolist()
    read = [*running.read(target, rows)]
    digests = [digest for images, _ in read for digest in digest_images(images)]
    if len({*digests}) < 2:
        raise VitscopeError("how: 'resample' takes values of another image: give two or more.")
    for parts in zip(*(operands for _, operands in read), strict=True):
        yield partial(replace_by_others, torch.cat(parts), digests)
