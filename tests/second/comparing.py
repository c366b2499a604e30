"""Hold what vitscope says of a network against the second reading of it."""

import contextlib
import io
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import vitscope
from tests.second.reading import Operand, Reading, Sum, fused_products, read_softmaxes
from vitscope.errors import VitscopeError
from vitscope.files.tables import read_metadata
from vitscope.networks.building.networks import without_fast_path
from vitscope.networks.finding.cut_points import head_costs

RIGHT, TOLD, REFUSED, WRONG, RAW = "right", "told", "refused", "WRONG", "RAW"
FAILED = (WRONG, RAW)
# In float32, of sums in another order; two logits as near may change places.
CLOSE, NEAR = 2e-4, 1e-3


@dataclass
class Outcome:
    """What came of a network: differences that nothing tells, and those that a sentence tells."""

    verdict: str
    silent: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    why: str = ""


class LateError(Exception):
    """Raised when a network has had its seconds."""


def compare(model: nn.Module, images: Tensor) -> Outcome:
    """Compare the tables of a network that returns logits with its second reading."""
    with torch.no_grad(), without_fast_path():
        labels = model(images).argmax(1)
        labels = labels.where(torch.arange(len(labels)) % 4 > 0, labels.roll(1))
        state = {name: value.clone() for name, value in model.state_dict().items()}
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scope = vitscope.look(
                model, images.clone(), labels, analysis={"bootstrap": {"resamples": 100}}
            )
            for name in ("lesion", "skip_ratio", "attention", "blocks"):
                _table(scope, name)
    except VitscopeError as error:
        return Outcome(REFUSED, why=str(error))
    except Exception as error:
        if isinstance(error, LateError):
            raise
        return Outcome(RAW, why=traceback.format_exc())
    found = [*differences(scope, model, images, labels)]
    for name, value in model.state_dict().items():
        if not torch.equal(value, state[name]) and not value.isnan().any():
            found.append(("changed", f"{name} was changed"))
    silent = [text for what, text in found if what not in MAY_MISS or not _tells(scope, what)]
    told = [text for _, text in found if text not in silent]
    verdict = WRONG if silent else TOLD if told else RIGHT
    return Outcome(verdict, silent, told, "\n".join(scope.warnings))


@torch.no_grad()
def differences(
    scope: Any, model: nn.Module, images: Tensor, labels: Tensor
) -> Iterator[tuple[str, str]]:
    """Yield what the tables of a network say otherwise than its second reading: a word, a text."""
    with torch.compiler.set_stance("force_eager"), without_fast_path():
        reading = Reading(model, images.clone())
        softmaxes = read_softmaxes(model, images.clone())
        attending = [each for each in softmaxes if reading.graph.attends(each.call)]
        yield from _of_sums(scope, reading, labels)
        yield from _of_softmaxes(scope, attending)
        yield from _of_costs(scope, model, images, reading)


# What is missing may be told; what is there is right.
MAY_MISS = ("missing", "no ratio", "attention missing")


def _tells(scope: Any, what: str) -> bool:
    """Tell whether a sentence of vitscope's says that something of this is missing."""
    words = ("attention",) if what == "attention missing" else ("figure", "sum", "ratio", "places")
    return any(word in warning for warning in scope.warnings for word in words)


def _table(scope: Any, name: str) -> pd.DataFrame | None:
    try:
        table: pd.DataFrame = scope.table(name)
    except VitscopeError as error:
        absent = ("no cut point of the model has a residual branch", "attention", "no branch")
        if not any(word in str(error) for word in absent):
            raise
        return None
    return table


def _of_sums(scope: Any, reading: Reading, labels: Tensor) -> Iterator[tuple[str, str]]:
    lesions, table = _table(scope, "lesion"), _table(scope, "skip_ratio")
    used: set[int] = set()
    for row in [] if lesions is None else lesions.rename(columns={"index": "number"}).itertuples():
        got = [] if table is None else [*table[table["index"] == row.number]["ratio"]]
        chosen = _find_sum(reading, row, got, used)
        if not got:
            yield "no ratio", f"{row.name}: no ratio"
        elif chosen is None:
            yield "ratio", f"{row.name}: ratios {got}, and no sum has them"
        else:
            number, operand = chosen
            used.add(number)
            logits = reading.without_rest(reading.sums[number], operand)
            true = float((logits.argmax(1) == labels).double().mean())
            top = logits.double().topk(2).values
            tied = -top.diff().squeeze(1) < NEAR * logits.abs().amax(1)
            if abs(row.accuracy - true) > float(tied.double().mean()) + 1e-9:
                yield "lesion", f"{row.name}: accuracy {row.accuracy} without, true {true}"
    for number, each in enumerate(reading.sums):
        if each.expected and number not in used:
            yield "missing", f"the sum {each.node.call} is in no row"


def _find_sum(
    reading: Reading, row: Any, got: list[float], used: set[int]
) -> tuple[int, Operand] | None:
    """Return the first sum, and its operand, that has the ratios of a row.

    Where an operand is what all paths met in before, it is the stream, and no other.
    """
    first = max(used, default=-1) + 1
    numbers = [*range(first, len(reading.sums)), *range(first)]
    # Those that other paths lead around come last.
    for number in sorted(numbers, key=lambda number: not reading.sums[number].meets):
        each: Sum = reading.sums[number]
        same = [operand for operand in each.operands if operand.same and each.meets]
        for operand in same or each.operands:
            if number not in used and _has_all(operand.ratios, got):
                return number, operand
    return None


def _has_all(ratios: list[float], got: list[float]) -> bool:
    """Tell whether a row's ratios are among those of an operand; NaN is of what has no branch."""
    real = [value for value in got if np.isfinite(value)]
    return bool(real) and all(np.isclose(ratios, each, rtol=CLOSE, atol=0).any() for each in real)


def _of_softmaxes(scope: Any, softmaxes: list[Any]) -> Iterator[tuple[str, str]]:
    table = _table(scope, "attention") if softmaxes else None
    rows = [] if table is None else [*table[table["head"].isna()].itertuples()]
    waiting = [*softmaxes]
    for row in rows:
        alike = [each for each in waiting if _alike(each.entropy, row.entropy)]
        if not alike:
            yield "entropy", f"{row.name}: entropy {row.entropy}, and no softmax has it"
        else:
            waiting.remove(alike[0])
    if waiting and rows:
        yield "attention missing", f"{len(waiting)} of {len(softmaxes)} softmaxes are in no row"


def _alike(true: float, got: float) -> bool:
    return abs(true - got) <= CLOSE * max(1.0, true)


def _of_costs(
    scope: Any, model: nn.Module, images: Tensor, reading: Reading
) -> Iterator[tuple[str, str]]:
    blocks = scope.table("blocks")
    head = head_costs(read_metadata(scope._maker.path("blocks")))
    # oneDNN runs an LSTM as one operation, of which torch counts nothing.
    onednn = torch.backends.mkldnn.flags(enabled=False)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH), onednn:
        model(images[:1])
    # Nor does it count products of the attention that it fuses on a CPU.
    operations = counter.get_total_flops() // 2 + fused_products(model, images[:1])
    read = reading.graph.memory_read
    every = [*model.parameters()]
    taken = sum(each.numel() for each in every if each.untyped_storage()._cdata in read)
    # What an earlier pass computed of parameters is not computed again: none is read twice.
    allowed = {"operations": (operations, operations)}
    allowed["parameters"] = (taken, sum(each.numel() for each in every))
    for what, (least, most) in allowed.items():
        got = int(blocks[what].sum()) + getattr(head, what)
        if not least <= got <= most:
            yield what, f"{what}: {got}, true {least} to {most}"
