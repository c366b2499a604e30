"""Cut points, where a network's residual stream is read, and the columns that describe them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from vitscope.errors import VitscopeError, nearest, quoted
from vitscope.files.tables import Columns, Table, read_metadata
from vitscope.typed import typed

if TYPE_CHECKING:
    from torch import Tensor


Kind = Literal["stem", "conv", "msa", "mlp", "mixing", "parallel", "ssm", "pool", "head"]
At = Literal["input", "output"]
Side = Literal["after", "before"]
How = Literal["stem", "join", "block", "subsampling", "layer", "named"]
# Operations are alike if they share a name, and if their results share the number of dimensions and
# the number of values per image. All that weigh values by a softmax are alike.
Alike = tuple[str, int, int]


@dataclass(frozen=True)
class Layout:
    """Describes the order of images (n), channels (c), space (h, w) and tokens (l) in a tensor.

    For tokens, `grid` gives the rows and columns that their positions fill, and `count` the number
    of tokens in an image; the first `prefix` tokens have no position. If the tokens do not run row
    by row, `tokens` gives the index of the token at each position. If windows are counted as
    images, the dimension `n` holds both the images and their windows.
    """

    order: str
    prefix: int = 0
    grid: tuple[int, int] | None = None
    count: int = 0
    tokens: tuple[int, ...] | None = None

    def to_nchw(self, tensor: "Tensor") -> "Tensor":
        """Return the feature map as (N, C, H, W), without prefix tokens; as a view if possible."""
        if self.order == "nchw":
            return tensor
        if self.order == "nhwc":
            return tensor.permute(0, 3, 1, 2)
        if self.grid is None:
            raise ValueError("a layout of tokens needs the grid that they fill")
        moved = self.all_tokens(tensor)
        kept = moved[:, self.prefix :] if self.tokens is None else moved[:, list(self.tokens)]
        tokens = kept.transpose(1, 2)
        return tokens.view(*tokens.shape[:2], *self.grid)

    def first_prefix(self, tensor: "Tensor") -> "Tensor | None":
        """Return the first token without a position, as (N, C); None if every token has one."""
        first = 0 if self.prefix else None
        if self.tokens is not None:
            first = next((n for n in range(self.count) if n not in self.tokens), None)
        return None if first is None else self.all_tokens(tensor)[:, first]

    def all_tokens(self, tensor: "Tensor") -> "Tensor":
        """Return the tokens of a tensor, as (N, tokens, C)."""
        channel, image = self.order.index("c"), self.order.index("n")
        inner = [d for d in range(tensor.ndim) if d not in (channel, image)]
        moved = tensor.permute(image, *inner, channel)
        if moved.ndim != 3 or (self.count and moved.shape[1] != self.count):
            moved = moved.reshape(-1, self.count, moved.shape[-1])
        return moved


@dataclass(frozen=True)
class OperationId:
    """Identifies an operation in every pass: the `nth` of its module's operations that are `alike`.

    Operations that run inside others are not counted, since the operations inside attention and
    linear layers depend on the device.
    """

    module: str
    alike: Alike
    nth: int


@dataclass(frozen=True)
class Addition:
    """Identifies one addition of a join, and its operands in stream and branch by their indices.

    Indices count all arguments of the operation, including those that are not tensors.
    """

    operation: OperationId
    stream: tuple[int, ...]
    branch: tuple[int, ...]


@dataclass(frozen=True)
class Join:
    """Lists, in order, the additions that join a branch to the stream.

    `identity`: the stream has not changed since the previous cut point; without the branch exactly
    that stream remains. `layout` is the layout of the last sum, or None if its two sides cannot be
    read.
    """

    additions: tuple[Addition, ...]
    identity: bool
    layout: Layout | None = None

    @property
    def names(self) -> frozenset[str]:
        return frozenset(addition.operation.alike[0] for addition in self.additions)


@dataclass(frozen=True)
class CutPoint:
    """A place where the residual stream of a model is read.

    The stream is the input or the output of a `module`, or the result of an `operation`. `join` has
    the additions by which a branch joins the stream there. `norm` says on which side of the
    normalization layer after their sum the point lies; None if there is no such layer.
    """

    name: str
    kind: Kind
    stage: int
    module: str | None
    at: At
    layout: Layout
    operation: OperationId | None = None
    join: Join | None = None
    how: How = "named"
    norm: Side | None = None


def write_cut_points(points: Sequence[CutPoint]) -> str:
    """Write cut points as JSON, which holds each layout once even if many points share it."""
    layouts = list(dict.fromkeys(point.layout for point in points))
    rows = [{**asdict(point), "layout": layouts.index(point.layout)} for point in points]
    return json.dumps({"layouts": [asdict(layout) for layout in layouts], "points": rows})


def parse_cut_points(text: str) -> list[CutPoint]:
    listed = json.loads(text)
    layouts = typed(listed["layouts"], list[Layout])
    numbers = [entry.pop("layout") for entry in listed["points"]]
    return [
        replace(typed({**entry, "layout": {"order": ""}}, CutPoint), layout=layouts[n])
        for n, entry in zip(numbers, listed["points"], strict=True)
    ]


class PartCosts(NamedTuple):
    """Holds the costs of the part that ends at a cut point, or of the head after the last point."""

    parameters: int
    operations: int
    activations: int
    peak: int


def head_costs(metadata: Mapping[str, str]) -> PartCosts:
    return PartCosts(*(int(metadata[f"head_{cost}"]) for cost in PartCosts._fields))


def read_cut_points(path: Path | str) -> list[CutPoint]:
    return parse_cut_points(read_metadata(path)["cut_points"])


def named_cut_point(
    section: str, model: str, points: Sequence[CutPoint], wanted: str | int
) -> CutPoint:
    """Return the cut point with a name, or with an index that counts from the end if below 0."""
    names = [point.name for point in points]
    if isinstance(wanted, int) and -len(points) <= wanted < len(points):
        return points[wanted]
    if wanted in names:
        return points[names.index(str(wanted))]
    raise VitscopeError(
        f"analysis.{section}.cut_point: found {quoted(str(wanted))}, allowed for models.{model}: "
        f"{-len(points)} to {len(points) - 1}, or the name of a cut point."
        f"{nearest(str(wanted), names)} `vitscope check` lists them."
    )


CUT_POINT: Columns = {
    "model": ("string", "model, as the study names it"),
    "index": ("int32", "position of the cut point, 0 for the stem"),
    "name": ("string", "name of the cut point in the model"),
    "kind": ("string", "stem, conv, msa, mlp, mixing, parallel, ssm, pool or head"),
    "stage": ("int32", "stage of the model, 0 for the stem"),
    "depth": (
        "float64",
        "normalized depth: index over the largest index, with all sums counted",
    ),
    "channels": ("int32", "channels of the feature map"),
    "height": ("int32", "height of the feature map"),
    "width": ("int32", "width of the feature map"),
}

# The costs of the part that ends at a cut point, in the order of `PartCosts`.
COSTS: Columns = {
    "parameters": ("int64", "parameters between this cut point and the one before"),
    "operations": (
        "int64",
        "multiply-adds of one image there, in convolutions and products of matrices",
    ),
    "activations": (
        "int64",
        "bytes of all that one image makes there, as a backward pass keeps them at most",
    ),
    "peak": ("int64", "most bytes of one image in memory at once there, without gradients"),
}

NORM = "norm"
_SIDE = (
    "after or before: the side of the norm of a sum on which the cut point lies; null where "
    "the sum has none"
)
BLOCKS = Table("blocks", {**CUT_POINT, NORM: ("string", _SIDE), **COSTS})
