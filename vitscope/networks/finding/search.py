"""Find the cut points of any network from what it computes, or take those that a study names."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from vitscope.errors import VitscopeError, quoted
from vitscope.networks.finding.cut_finder import Cut, CutFinder, Points, named_cuts
from vitscope.networks.finding.cut_points import CutPoint, Side
from vitscope.networks.finding.dataflow_recorder import record_dataflow
from vitscope.networks.finding.naming import CutNamer
from vitscope.networks.finding.recorded_pass import RecordedPass

# A stretch between two cut points that exceeds both of these holds several streams.
TOO_LARGE_SHARE = 0.4  # share of the network's layers
ADDITIONS_OF_STREAMS = 10  # additions of maps


@dataclass(frozen=True)
class FoundPoints:
    """Holds the cut points of a network, and describes what they do not cover.

    `outputs` is the shape of the network's output for one image. `missed` counts, before each cut
    point and after the last, the sums of stream and branch that are no cut points. `warnings` are
    sentences that name modules.
    """

    points: list[CutPoint]
    uncovered: list[str]
    outputs: tuple[int, ...]
    missed: tuple[int, ...]
    warnings: tuple[str, ...] = ()


def search_for_cut_points(
    model: nn.Module,
    images: Tensor,
    run: Callable[[Tensor], Any] | None = None,
    points: Points | None = None,
    norms: Side = "after",
) -> FoundPoints:
    """Return the cut points of a network, given at least two `images`.

    Cut points lie at the modules that `points` name, or else are found. `run`, if given, is called
    in place of the network. `norms` says whether to read the stream before or after the
    normalization layers that follow sums.
    """
    recorded = RecordedPass(model, record_dataflow(model, images, run))
    outputs = recorded.flow.shape_of(recorded.flow.result)[1:]
    if points is not None:
        if norms == "before":
            raise VitscopeError(
                "norms: `points` say themselves on which side of a norm they lie: leave it out."
            )
        named = CutNamer(recorded).make_points(named_cuts(recorded, points))
        return FoundPoints(named, [], outputs, (0,) * (len(named) + 1))
    if norms == "before" and not recorded.norms:
        raise VitscopeError(
            "norms: no block of the network normalizes the sum of stream and branch, so that there "
            "is no side to choose: leave it out."
        )
    cuts = CutFinder(recorded, norms).find_cuts()
    found = CutNamer(recorded).make_points(cuts)
    joined = {cut.end for cut in cuts}
    beside = [d for d in recorded.dominators if recorded.joins(d) and d not in joined]
    # A sum of many tokens or pixels is lost if their places in the image are unknown.
    lost = [d for d in beside if recorded.maps.layout(d) is None and recorded.holds_many_vectors(d)]
    said = [*_warn_of_lost_sums(recorded, cuts, lost)]
    _refuse_several_streams(recorded, cuts, found, said)
    outside = _sums_outside(recorded, cuts)
    at = [cut.index for cut in cuts]
    missed = Counter(bisect_left(at, index) for index in (*lost, *outside))
    every = recorded.additions(0, recorded.order[-1])
    inner = [index for index in every if index not in {*joined, *beside, *outside}]
    counts = {"within branches": len(inner), "of values that are no maps": len(beside)}
    uncovered = [f"{count} additions {where}" for where, count in counts.items() if count]
    warnings = (
        *said,
        *_warn_of_sums_outside(recorded, cuts, found, outside),
        *_warn_of_unread_branches(recorded, cuts, found),
    )
    counted = tuple(missed[number] for number in range(len(cuts) + 1))
    return FoundPoints(found, uncovered, outputs, counted, warnings)


def _sums_outside(recorded: RecordedPass, cuts: Sequence[Cut]) -> list[int]:
    """Return the sums of stream and branch that other paths go around, after the first cut."""
    joined = {cut.end for cut in cuts if recorded.joins(cut.end)}
    ends = [each for each in recorded.dominators if cuts and each > cuts[0].index]
    return [index for end in ends for index in recorded.units_outside(end, end in joined)]


def _warn_of_sums_outside(
    recorded: RecordedPass, cuts: Sequence[Cut], points: Sequence[CutPoint], outside: Sequence[int]
) -> Iterator[str]:
    names = ["the images", *(point.name for point in points), "the result"]
    for position, (start, end, share) in enumerate(recorded.stretches([cut.index for cut in cuts])):
        there = [index for index in outside if start < index <= end]
        if there:
            first, last = (quoted(recorded.operations[i].module) for i in (there[0], there[-1]))
            yield (
                f"between {quoted(names[position])} and {quoted(names[position + 1])}, with "
                f"{share:.0%} of the layers, {len(there)} sums are in no figure, from {first} to "
                f"{last}: other paths lead around them"
            )


def _refuse_several_streams(
    recorded: RecordedPass, cuts: Sequence[Cut], points: Sequence[CutPoint], lost: Sequence[str]
) -> None:
    if not cuts:
        nowhere = (
            "nowhere do all paths from the images meet in a map, as where it has several streams"
        )
        raise VitscopeError(
            f"no cut point was found in the network: {lost[0] if lost else nowhere}; name the "
            f"points to read, as `points`."
        )
    names = ["the images", *(point.name for point in points), "the result"]
    for position, (start, end, share) in enumerate(recorded.stretches([cut.index for cut in cuts])):
        additions = len(recorded.additions(start, end))
        if share > TOO_LARGE_SHARE and additions > ADDITIONS_OF_STREAMS:
            raise VitscopeError(
                f"only part of the network was found: {len(cuts)} cut points, and between "
                f"{quoted(names[position])} and {quoted(names[position + 1])} lie "
                f"{share:.0%} of its layers, with {additions} additions to several streams at "
                f"once; name the points to read, as `points`."
            )


def _warn_of_lost_sums(
    recorded: RecordedPass, cuts: Sequence[Cut], lost: Sequence[int]
) -> Iterator[str]:
    if not lost:
        return
    last = max((cut.index for cut in cuts if cut.index < lost[0]), default=0)
    way = [d for d in recorded.dominators if last < d <= lost[0]]
    first = next((d for d in way if recorded.maps.layout(d) is None), lost[0])
    operation = recorded.operations[first]
    what = "the places of tokens are lost"
    if recorded.maps.has_places(first):
        what = "several streams lie in one value, with several tokens at each place"
    yield (
        f"in {quoted(operation.module or 'the network')} {what} ({operation.name}): {len(lost)} "
        f"sums are in no figure, from "
        f"{quoted(recorded.operations[lost[0]].module)} to "
        f"{quoted(recorded.operations[lost[-1]].module)}"
    )


def _warn_of_unread_branches(
    recorded: RecordedPass, cuts: Sequence[Cut], points: Sequence[CutPoint]
) -> Iterator[str]:
    """Yield a warning for each branch without lesion or ratio, and each stream without a sum."""
    for cut, point in zip(cuts, points, strict=True):
        if cut.how == "join" and point.join is None:
            partial = recorded.operations[cut.end].name in ("cat", "write")
            why = (
                "the stream is added to some of the channels alone"
                if partial
                else "nobody can tell which side of the sum is the shortcut"
            )
            yield f"at {quoted(point.name)} {why}: it has no lesion and no ratio of the two"
        elif point.join is not None and point.join.layout is None:
            yield f"at {quoted(point.name)} the sides of the sum are not read one by one: no ratio"
    for index in recorded.dominators[1:]:
        if recorded.meets_branch_without_sum(index) and recorded.holds_many_vectors(index):
            operation = recorded.operations[index]
            yield (
                f"in {quoted(operation.module or 'the network')} stream and branch meet in "
                f"{quoted(operation.name)}, which is read as no sum: its branch is in no figure"
            )
