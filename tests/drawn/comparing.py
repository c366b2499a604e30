import re
import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

import vitscope
from tests.drawn.board import Attended
from tests.drawn.modules import Drawn
from tests.drawn.specs import Network
from tests.drawn.truth import (
    Truth,
    build,
    logits_of,
    numbers_of,
    ratios_of,
    truth_of,
    variance_of,
)
from vitscope.errors import VitscopeError
from vitscope.files.tables import read_metadata
from vitscope.networks.building.networks import without_fast_path
from vitscope.networks.finding.cut_points import head_costs

# Of sums in float32 in another order; a lesion may differ where two logits are as near.
CLOSE = 1e-4
NEAR = 1e-4
ANALYSIS = {"bootstrap": {"resamples": 100}}
RIGHT, REFUSED, TOLD, WRONG, RAW = "right", "refused", "told", "WRONG", "RAW"
FAILED = (WRONG, RAW)
# What is not there may be told of; what is there is right.
MISSING = ("missing", "no branch", "entry", "no ratio", "attention missing", "streams", "random")


@dataclass(frozen=True)
class Difference:
    """Something that is other than the truth: what, at which module, and both values."""

    what: str
    module: str
    text: str


@dataclass
class Outcome:
    """How a network compares: the verdict, and why."""

    spec: Network
    verdict: str
    why: str = ""
    differences: list[Difference] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        said = [f"{each.what}: {each.text}" for each in self.differences]
        lines = [f"{self.verdict} {self.spec!r}", *said, *self.why.splitlines()[-3:]]
        return "\n    ".join(lines)

    @property
    def cause(self) -> str:
        """Return what failed, by which failures that are alike are told."""
        if self.verdict == RAW:
            return self.why.splitlines()[-1].split(":")[0]
        return ", ".join(sorted({each.what for each in self.differences}))


def compare(spec: Network) -> Outcome:
    network, images, labels = build(spec)
    truth = truth_of(network, images)
    kept = images.clone(), {name: value.clone() for name, value in network.state_dict().items()}
    try:
        outcome = _measured(spec, network, images, labels, truth)
    except VitscopeError as error:
        outcome = Outcome(spec, REFUSED, str(error))
    except Exception:
        outcome = Outcome(spec, RAW, traceback.format_exc())
    for what, module in truth.unclear:
        if outcome.verdict not in (REFUSED, RAW):
            text = f"{what} in {module}, which nothing says"
            unclear = Difference(what, module, text)
            told = _is_told(unclear, outcome.warnings, network, truth)
            outcome.verdict = TOLD if told and outcome.verdict != WRONG else WRONG
            outcome.differences += [] if told else [unclear]
    if changed := _changed(network, images, kept, truth):
        outcome.verdict = WRONG
        outcome.differences.append(Difference("changed", "", changed))
    return outcome


def _changed(
    network: nn.Module, images: Tensor, kept: tuple[Tensor, dict[str, Tensor]], truth: Truth
) -> str:
    """Tell what of a network or its images is no longer as it was."""
    before, weights = kept
    if not torch.equal(images, before):
        return "the images were changed"
    for name, value in network.state_dict().items():
        if value.is_meta or not torch.equal(value, weights[name]):
            return f"{name} was changed"
    with torch.no_grad(), without_fast_path():
        again = logits_of(network(images))
        alike = torch.allclose(again, truth.logits, rtol=1e-4, atol=1e-4)
    return "" if alike or _is_random(truth) else "the network computes something else"


def _is_random(truth: Truth) -> bool:
    return any(what == "random" for what, _ in truth.unclear)


def _measured(
    spec: Network, network: Drawn, images: Tensor, labels: Tensor, truth: Truth
) -> Outcome:
    scope = vitscope.look(network, images.clone(), labels, analysis=ANALYSIS)
    if _is_random(truth):
        # Its numbers are of one pass among many.
        scope.table("predictions")
        return Outcome(spec, RIGHT, warnings=scope.warnings)
    found = list(_differences(scope, truth, labels))
    warnings = scope.warnings
    if not found:
        return Outcome(spec, RIGHT, warnings=warnings)
    silent = [each for each in found if not _is_told(each, warnings, network, truth)]
    return Outcome(spec, WRONG if silent else TOLD, "\n".join(warnings), silent or found, warnings)


def _is_told(difference: Difference, warnings: list[str], network: nn.Module, truth: Truth) -> bool:
    """Tell whether a sentence names the module of a difference, or one beside or around it."""
    if difference.what not in MISSING:
        return False
    modules = [name for name, _ in network.named_modules() if name]
    beside = _beside(difference, truth)
    for warning in warnings:
        quoted = [name.partition("#")[0] for name in re.findall(r"'([^']+)'", warning)]
        named = [name for name in quoted if name in modules]
        if difference.what == "random" and named:
            # Where passes differ is seen behind the branch.
            return True
        if re.search(r"from '[^']+' to '[^']+'", warning):
            first, last = sorted(modules.index(name) for name in named[-2:])
            named += modules[first : last + 1]
        if any(_around(one, other) for one in named for other in beside):
            return True
    return False


def _around(one: str, other: str) -> bool:
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def _beside(difference: Difference, truth: Truth) -> set[str]:
    """Return the module of a difference; of a sum that is missing, those of the sums beside it."""
    names = [each.unit for each in truth.sums]
    found = {difference.module} - {""}
    if difference.what == "entry":
        # It is the input of the first sum behind it.
        at = _number(difference.module)
        found |= {*[name for name in names if _number(name) > at][:1]}
    for index, name in enumerate(names):
        if name == difference.module and difference.what == "missing":
            found |= {*names[max(index - 1, 0) : index + 2]}
    return found


def _number(name: str) -> int:
    """Return the number of the block in which a module lies; -1 of the stem."""
    return int(name.split(".")[1]) if "." in name else -1


def _differences(scope: Any, truth: Truth, labels: Tensor) -> Any:
    blocks = scope.table("blocks")
    yield from _of_predictions(scope, truth, labels)
    pairs, entries = _paired(scope, blocks, truth)
    yield from _of_sums(scope, blocks, pairs, truth, labels)
    if not truth.unclear and any(index is not None for index in pairs.values()):
        # Where no sum is found, layers may be cut points; what joins streams may be one too.
        yield from _of_entries(scope, blocks, entries, truth)
    head = head_costs(read_metadata(scope._maker.path("blocks")))
    for what in ("parameters", "operations"):
        got, true = int(blocks[what].sum()) + getattr(head, what), getattr(truth, what)
        if got != true:
            yield Difference(what, "", f"{what}: {got}, true {true}")
    yield from _of_attention(scope, truth)


def _of_predictions(scope: Any, truth: Truth, labels: Tensor) -> Any:
    got = scope.table("predictions")["nll"].to_numpy()
    true = torch.nn.functional.cross_entropy(truth.logits, labels, reduction="none").numpy()
    if not np.allclose(got, true, rtol=CLOSE, atol=CLOSE):
        yield Difference("predictions", "", f"nll {got.mean()}, true {true.mean()}")


def _close(got: Any, true: Any) -> bool:
    return bool(np.isclose(got, true, rtol=CLOSE, atol=1e-7, equal_nan=True))


def _paired(scope: Any, blocks: pd.DataFrame, truth: Truth) -> tuple[dict[int, int | None], Any]:
    """Return which row each true sum has, if any, and the rows of what is no sum."""
    joined = [*_lesions(scope)["index"]]
    others = [index for index in blocks["index"] if index not in joined]
    if len(joined) == len(truth.sums):
        return dict(enumerate(joined)), others
    variances = scope.table("feature_variance").set_index("index")["variance"]
    true = [variance_of(each.result, each.place) for each in truth.sums]
    pairs = _aligned([variances[index] for index in joined], joined, true)
    for number, index in pairs.items():
        if index is None:
            # A cut point all the same, of which nobody can tell the branch.
            alike = [row for row in others if _close(variances[row], true[number])]
            pairs[number] = alike[0] if alike else None
    return pairs, [index for index in others if index not in pairs.values()]


def _lesions(scope: Any) -> pd.DataFrame:
    try:
        return scope.table("lesion")
    except VitscopeError as error:
        if "no cut point of the model has a residual branch" not in str(error):
            raise
        return pd.DataFrame({"index": [], "accuracy": []})


def _aligned(got: list[float], rows: list[int], true: list[float]) -> dict[int, int | None]:
    """Return the longest common run of values, by dynamic programming."""
    best = np.zeros((len(true) + 1, len(got) + 1), int)
    for i in reversed(range(len(true))):
        for j in reversed(range(len(got))):
            same = _close(got[j], true[i])
            best[i, j] = max(best[i + 1, j], best[i, j + 1], best[i + 1, j + 1] + same)
    pairs: dict[int, int | None] = dict.fromkeys(range(len(true)))
    i = j = 0
    while i < len(true) and j < len(got):
        if _close(got[j], true[i]) and best[i, j] == best[i + 1, j + 1] + 1:
            pairs[i] = rows[j]
            i, j = i + 1, j + 1
        elif best[i, j] == best[i + 1, j]:
            i += 1
        else:
            j += 1
    # What lies between the same pairs, as many on both sides, is the same units read wrongly.
    return pairs


def _of_sums(
    scope: Any, blocks: pd.DataFrame, pairs: dict[int, int | None], truth: Truth, labels: Tensor
) -> Any:
    lesions = _lesions(scope).set_index("index")
    rows = blocks.set_index("index")
    variances = scope.table("feature_variance").set_index("index")["variance"]
    ratios = None if lesions.empty else scope.table("skip_ratio").set_index(["index", "tokens"])
    for extra in {*lesions.index} - {*pairs.values()}:
        name = str(rows["name"][extra]).partition("#")[0]
        yield Difference("extra", name, f"{name}: no sum of the network is read so")
    for number, index in pairs.items():
        each, logits = truth.sums[number], truth.without[number]
        if index is None:
            yield Difference("missing", each.unit, f"{each.unit}: the sum is not found")
            continue
        if index not in lesions.index:
            yield Difference("no branch", each.unit, f"{each.unit}: a sum without a branch")
            continue
        kind = rows["kind"][index]
        if kind not in each.kinds:
            yield Difference("kind", each.unit, f"{each.unit}: {kind}, true {[*each.kinds]}")
        got, true = variances[index], variance_of(each.result, each.place)
        if not _close(got, true):
            yield Difference("variance", each.unit, f"{each.unit}: variance {got}, true {true}")
        accuracy = float((logits.argmax(1) == labels).double().mean())
        tied = logits.topk(2).values.diff().abs().squeeze(1) < NEAR * logits.abs().amax(1)
        got = lesions["accuracy"][index]
        if abs(got - accuracy) > float(tied.double().mean()) + 1e-9:
            yield Difference("lesion", each.unit, f"{each.unit}: without {got}, true {accuracy}")
        for tokens, true in ratios_of(each).items():
            got = ratios["ratio"].get((index, tokens), "none")
            # What is not told of a token to which nothing is added is as right as null.
            got = np.nan if got == "none" and np.isnan(true) else got
            if got == "none" or not _close(got, true):
                text = f"{each.unit}: skip ratio of {tokens} {got}, true {true}"
                yield Difference("no ratio" if got == "none" else "skip_ratio", each.unit, text)


def _of_entries(scope: Any, blocks: pd.DataFrame, others: list[int], truth: Truth) -> Any:
    """Compare what is no sum: the stem, and what makes the map smaller."""
    rows = blocks.set_index("index")
    variances = scope.table("feature_variance").set_index("index")["variance"]
    true = [variance_of(tokens, place) for _, tokens, place in truth.entries]
    pairs = _aligned([variances[index] for index in others], others, true)
    for number, index in pairs.items():
        name = truth.entries[number][0]
        if index is None:
            yield Difference("entry", name, f"{name}: it is no cut point")
        elif number == 0 and rows["kind"][index] != "stem":
            yield Difference("entry", name, f"the stem is {rows['kind'][index]}")
    for extra in {*others} - {*pairs.values()}:
        name = str(rows["name"][extra]).partition("#")[0]
        if any(name == between or name.startswith(f"{between}.") for between in truth.between):
            # Layers of what has no residual may be cut points.
            continue
        yield Difference("extra", name, f"{rows['name'][extra]}: a cut point that is none")


def _which(name: str) -> tuple[str, int]:
    """Return the module of an attention, and the how manieth run of it."""
    module, _, number = name.partition("#")
    return module.removesuffix(".mha"), int(number or 1)


def _of_attention(scope: Any, truth: Truth) -> Any:
    if not truth.attended:
        return
    try:
        table = scope.table("attention")
    except VitscopeError as error:
        # Of a network that attends: what none of it can be read says where.
        for each in truth.attended:
            if each.softmax and f"'{each.module}" not in str(error):
                text = f"{each.module}: refused without its name: {error}"
                yield Difference("attention missing", each.module, text)
        return
    runs: Counter[str] = Counter()
    expected: dict[tuple[str, int], Attended] = {}
    for each in truth.attended:
        runs[each.module] += 1
        expected[each.module, runs[each.module]] = each
    read_ones = {_which(row.name): row for row in table[table["head"].isna()].itertuples()}
    for key, row in read_ones.items():
        if key not in expected:
            text = f"{row.name}: attention that is none"
            yield Difference("attention extra", row.name, text)
        elif not expected[key].seen and np.isfinite(row.distance):
            text = f"{row.name}: distance {row.distance}, and there is none"
            yield Difference("distance", row.name, text)
    for key, each in expected.items():
        name = each.module
        if key not in read_ones:
            yield Difference("attention missing", name, f"{name}: its attention is not read")
        if key not in read_ones or not each.seen:
            continue
        row, (far, entropy) = read_ones[key], numbers_of(each)
        if not _close(row.distance, far):
            yield Difference("distance", name, f"{name}: distance {row.distance}, true {far}")
        # In nats: that of a softmax which takes nearly all from one key is what rounding leaves.
        if not abs(row.entropy - entropy) <= CLOSE * max(1, entropy):
            yield Difference("entropy", name, f"{name}: entropy {row.entropy}, true {entropy}")
