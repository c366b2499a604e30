"""Find the cut points of any network from what it computes.

Where every path from the images to the result meets in an addition of two values that both depend
on the images, a branch joins the residual stream, which is whole again: a join. What enters the
first block is the stem; where the map that enters a block has another size than what left the last,
it was subsampled on the way. A stretch without joins is cut where the activation of a convolution,
a concatenation or a pooling ends. Or else a study names the points.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from vitscope.errors import VitscopeError, quoted
from vitscope.networks.finding.cut_points import CutPoint, Side
from vitscope.networks.finding.cuts import Cut, CutFinder
from vitscope.networks.finding.dataflow import record
from vitscope.networks.finding.named_points import Points, named_cuts
from vitscope.networks.finding.naming import describe_cuts
from vitscope.networks.finding.recorded_pass import RecordedPass

# Where so large a share of a network lies between two cut points, with so many additions of maps,
# it has several streams there.
TOO_LARGE_SHARE = 0.4
ADDITIONS_OF_STREAMS = 10


@dataclass(frozen=True)
class FoundPoints:
    """The cut points of a network, and what of it they do not cover, in words.

    `outputs` is the shape of the network's output for one image, `lost` how many sums lie behind
    the last point and cannot be read, and `warnings` are sentences that name modules.
    """

    points: list[CutPoint]
    uncovered: list[str]
    outputs: tuple[int, ...]
    lost: int = 0
    warnings: tuple[str, ...] = ()


def find_cut_points(
    model: nn.Module,
    images: Tensor,
    run: Callable[[Tensor], Any] | None = None,
    points: Points | None = None,
    norms: Side = "after",
) -> FoundPoints:
    """Return the cut points of a network that is given `images`, two or more.

    They are found, unless `points` name modules. `run` runs the network, if not the network itself;
    `norms` says on which side of the norms of sums it is read.
    """
    recorded = RecordedPass(model, record(model, images, run))
    outputs = recorded.flow.shape_of(recorded.flow.result)[1:]
    if points is not None:
        if norms == "before":
            raise VitscopeError(
                "norms: `points` say themselves on which side of a norm they lie: leave it out."
            )
        return FoundPoints(describe_cuts(recorded, named_cuts(recorded, points)), [], outputs)
    if norms == "before" and not recorded.norms:
        raise VitscopeError(
            "norms: no block of the network normalizes the sum of stream and branch, so that there "
            "is no side to choose: leave it out."
        )
    cuts = CutFinder(recorded, norms).find()
    found = describe_cuts(recorded, cuts)
    _refuse_streams(recorded, cuts, found)
    lost = _lost(recorded, cuts)
    behind = sum(index > cuts[-1].index for index in lost)
    said = (*_say_lost(recorded, cuts, lost), *_say_unread(recorded, cuts, found))
    return FoundPoints(found, _name_uncovered(recorded, cuts), outputs, behind, said)


def _refuse_streams(
    recorded: RecordedPass, cuts: Sequence[Cut], points: Sequence[CutPoint]
) -> None:
    """Refuse a network of which only part was found."""
    lost = [*_say_lost(recorded, cuts, _lost(recorded, cuts))]
    if lost and not cuts:
        raise VitscopeError(
            f"no cut point was found in the network: {lost[0]}; name the points to read, as "
            f"`points`."
        )
    if not cuts:
        raise VitscopeError(
            "no cut point was found in the network: nowhere do all paths from the images meet in "
            "a map, as where it has several streams; name the points to read, as "
            "`points`."
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


def _name_uncovered(recorded: RecordedPass, cuts: Sequence[Cut]) -> list[str]:
    """Say which additions of the network no cut point shows."""
    joined = {cut.end for cut in cuts}
    lost = [d for d in recorded.dominators if recorded.joins(d) and d not in joined]
    every = recorded.additions(0, recorded.order[-1])
    inner = [index for index in every if index not in {*joined, *lost}]
    said = []
    if inner:
        said.append(f"{len(inner)} additions within branches")
    if lost:
        said.append(f"{len(lost)} additions of values that are no maps")
    return said


def _lost(recorded: RecordedPass, cuts: Sequence[Cut]) -> list[int]:
    """Return the sums of many tokens or pixels of which nobody can tell where they are."""
    joined = {cut.end for cut in cuts}
    return [
        d
        for d in recorded.dominators
        if d not in joined
        and recorded.joins(d)
        and recorded.maps.layout(d) is None
        and recorded.holds_many(d)
    ]


def _say_lost(recorded: RecordedPass, cuts: Sequence[Cut], lost: Sequence[int]) -> Iterator[str]:
    """Say where the stream was lost, before the first of some sums."""
    if not lost:
        return
    last = max((cut.index for cut in cuts if cut.index < lost[0]), default=0)
    way = [d for d in recorded.dominators if last < d <= lost[0]]
    first = next((d for d in way if recorded.maps.layout(d) is None), lost[0])
    operation = recorded.operations[first]
    yield (
        f"in {quoted(operation.module or 'the network')} the places of tokens are lost "
        f"({operation.name}): {len(lost)} sums are in no figure, from "
        f"{quoted(recorded.operations[lost[0]].module)} to "
        f"{quoted(recorded.operations[lost[-1]].module)}"
    )


def _say_unread(
    recorded: RecordedPass, cuts: Sequence[Cut], points: Sequence[CutPoint]
) -> Iterator[str]:
    """Say which branches are not silenced, and where a stream goes on by something else."""
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
        if recorded.unread_meeting(index) and recorded.holds_many(index):
            operation = recorded.operations[index]
            yield (
                f"in {quoted(operation.module or 'the network')} stream and branch meet in "
                f"{quoted(operation.name)}, which is read as no sum: its branch is in no figure"
            )
