from dataclasses import replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests.drawn import additions
from tests.drawn.attention import Attend
from tests.drawn.board import Board, Sum
from tests.drawn.places import Place
from tests.drawn.specs import Between, Block, Network, Unit
from tests.drawn.terms import MAPPING, Branch, OnMap, kinds_of, kinds_within

PATCH = 4
# What stands between blocks and makes the map half as high and wide.
HALVING = ("conv", "avg pool", "max pool", "merge", "resize", "prune")
# Behind these tokens are a map again, whatever mixed them before.
MAPPING_BETWEEN = ("conv", "avg pool", "max pool", "resize", "convs", "dense")


class Norm(nn.Module):
    LAST = ("layer", "rms", "by hand")

    def __init__(self, place: Place, how: str) -> None:
        super().__init__()
        self.place, self.how = place, how
        c, on_map = place.channels, place.stream != "tokens"
        if how == "layer":
            self.norm: nn.Module = nn.LayerNorm(c)
        elif how == "rms":
            self.norm = nn.RMSNorm(c, eps=1e-6)
        elif how == "batch":
            self.norm = nn.BatchNorm2d(c) if on_map else nn.BatchNorm1d(c)
        elif how == "instance":
            kind = nn.InstanceNorm2d if on_map else nn.InstanceNorm1d
            self.norm = kind(c, affine=True)
        elif how == "group":
            self.norm = nn.GroupNorm(2, c)
        else:
            self.weight = nn.Parameter(torch.ones(c))

    def forward(self, x: Tensor) -> Tensor:
        last = self.how in self.LAST
        if self.place.stream == "nchw":
            return self._norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2) if last else self.norm(x)
        if last:
            return self._norm(x)
        if self.place.stream == "nhwc":
            return self.norm(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        return self.norm(x.transpose(1, 2)).transpose(1, 2)

    def _norm(self, x: Tensor) -> Tensor:
        if self.how == "by hand":
            return x * (x.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt() * self.weight
        return self.norm(x)


def _shortcut(how: str, before: Place, after: Place) -> nn.Module:
    stride = before.height // after.height
    ends = before.channels, after.channels
    if how == "linear":
        return nn.Linear(*ends)
    if how == "pool":
        return nn.AvgPool2d(stride)
    if how == "pad":
        return Padded(stride)
    if how == "pool conv":
        pool = nn.AvgPool2d(stride) if stride > 1 else nn.AvgPool2d(3, 1, 1)
        return nn.Sequential(pool, nn.Conv2d(*ends, 1, bias=False), nn.BatchNorm2d(ends[1]))
    layers = [nn.Conv2d(*ends, 1, stride, bias=False), nn.BatchNorm2d(ends[1])]
    if how == "long":
        layers += [nn.Hardtanh(-9, 9), nn.Conv2d(ends[1], ends[1], 1), nn.BatchNorm2d(ends[1])]
    return nn.Sequential(*layers)


class Padded(nn.Module):
    """Every so manieth pixel of half of the channels, and zeros for the others (He et al. 2016)."""

    def __init__(self, stride: int) -> None:
        super().__init__()
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        cut = x[:, : x.shape[1] // 2, :: self.stride, :: self.stride]
        return F.pad(cut, (0, 0, 0, 0, 0, x.shape[1] - cut.shape[1]))


class UnitModule(nn.Module):
    def __init__(self, spec: Unit, before: Place, after: Place, board: Board) -> None:
        super().__init__()
        self.spec, self.before, self.after, self.board = spec, before, after, board
        self.path = ""
        self.where, _, how = spec.norm.partition(" ")
        if self.where != "none":
            self.norm = Norm(after if self.where in ("post", "branch") else before, how)
        if self.where == "both":
            self.second = Norm(after, how)
        self.branches = nn.ModuleList([Branch(t, before, after, board) for t in spec.terms])
        if spec.shortcut:
            self.shortcut = _shortcut(spec.shortcut, before, after)
        if "g *" in spec.add:
            self.gate = nn.Linear(after.channels, after.channels)
        if "W" in spec.add:
            self.W = nn.Parameter(torch.randn(after.channels, after.channels))
        if " w)" in spec.add or "w *" in spec.add:
            self.w = nn.Parameter(0.5 + torch.rand(after.channels))
        if "where" in spec.add:
            self.register_buffer("m", torch.arange(after.tokens)[:, None] % 2 == 0)

    def forward(self, x: Tensor) -> Tensor:
        board, text = self.board, self.spec.add
        others = {name: getattr(self, name) for name in "wWm" if hasattr(self, name)}
        off = board.active and board.is_off()
        h = self.norm(x) if self.where in ("pre", "both") else x
        if self.spec.shortcut:
            x = self.shortcut(x)
        terms = [self._branch(branch(h)) for branch in self.branches]
        mapping = any(term.what in MAPPING for term in self.spec.terms)
        board.placed |= mapping or self.spec.shortcut == "pool conv"
        if "g *" in text:
            others["g"] = self.gate(terms[0]).sigmoid()
        x, *terms = (self._inside(each) for each in (x, *terms))
        stream = branch = x
        if board.active:
            stream, branch = (self._inside(p) for p in additions.parts(text, x, terms, **others))
        # A sum in place would change the stream that an exit reads later.
        y = self._ended(stream if off else self._inside(additions.add(text, x, terms, **others)))
        if board.active and board.off is None and not board.muted:
            parts = (self.after.to_tokens(each).clone() for each in (stream, branch, y))
            board.sums.append(Sum(self.path, *parts, self.after, kinds_of(self.spec)))
        return y

    def _branch(self, f: Tensor) -> Tensor:
        if self.where == "both":
            return self.second(f)
        return self.norm(f) if self.where == "branch" else f

    def _inside(self, x: Tensor) -> Tensor:
        """Return what is added in the layout in which it is added; or turn it back."""
        inside = self.spec.inside
        if inside == "sequence":
            return x.transpose(0, 1)
        return x.transpose(1, -1) if inside == "channels" else x

    def _ended(self, y: Tensor) -> Tensor:
        if self.spec.act:
            y = F.relu_(y) if self.spec.act == "relu_" else F.relu(y)
        return self.norm(y) if self.where == "post" else y


class BlockModule(nn.Module):
    def __init__(self, spec: Block, units: list[UnitModule], board: Board) -> None:
        super().__init__()
        self.how, self.board, self.path = spec.how, board, ""
        self.after = units[-1].after
        # Streams beside each other: there is none that a branch joins.
        self.unclear = "streams" if spec.how == "hyper" else ""
        self.kinds = kinds_within(spec.units)
        if spec.how == "shared":
            for unit in units[1:]:
                unit.branches = units[0].branches
        if spec.how == "residual":
            self.last = nn.Linear(units[0].before.channels, units[0].before.channels)
        if spec.how == "hyper":
            self.mix = nn.Parameter(torch.rand(len(units), 2))
        if spec.how == "twice":
            units = [each for unit in units for each in (unit, unit)]
        self.units = nn.ModuleList(units)
        if spec.how == "alias":
            self.alias = self.units[0]

    def forward(self, x: Tensor) -> Tensor:
        if self.how == "hyper":
            return self._beside(x)
        if self.how == "residual":
            return self._around(x)
        return self._run(x)

    def _beside(self, x: Tensor) -> Tensor:
        """Return the sum of two streams, to both of which each unit adds."""
        streams = torch.stack([x, 0.5 * x])
        for unit, mix in zip(self.units, self.mix, strict=True):
            with self.board.within():
                made = unit((streams * mix.reshape(2, *[1] * x.ndim)).sum(0))
            streams = streams + made
        return streams.sum(0)

    def _around(self, x: Tensor) -> Tensor:
        """Return the sum of a stream and what all units make of it."""
        board, place = self.board, self.units[0].before
        off = board.active and board.is_off()
        with board.within():
            made = place.from_tokens(self.last(place.to_tokens(self._run(x.clone()))))
        y = x if off else x + made
        if board.active and board.off is None and not board.muted:
            parts = (place.to_tokens(each).clone() for each in (x, made, y))
            board.sums.append(Sum(self.path, *parts, place, self.kinds))
        return y

    def _run(self, x: Tensor) -> Tensor:
        for _ in range(2 if self.how == "loop" else 1):
            for unit in self.units:
                if self.how == "inline":
                    x = unit.forward(x)
                elif self.how == "checkpoint":
                    x = checkpoint(unit, x, use_reentrant=False)
                elif self.how == "tuple":
                    x, _ = unit(x), None
                else:
                    x = unit(x)
        return x


class BetweenModule(nn.Module):
    """What makes the map smaller, or mixes its tokens, without a residual."""

    def __init__(self, spec: Between, before: Place, after: Place, board: Board) -> None:
        super().__init__()
        self.how, self.before, self.after, self.board = spec.how, before, after, board
        self.unclear = ""
        c, more = before.channels, after.channels
        self.path = ""
        if self.how == "conv":
            self.do: nn.Module = nn.Conv2d(c, more, 2, 2)
        elif self.how in ("avg pool", "max pool"):
            pool = nn.AvgPool2d(2) if self.how == "avg pool" else nn.MaxPool2d(2)
            self.do = nn.Sequential(pool, nn.Conv2d(c, more, 1))
        elif self.how == "merge":
            self.do = nn.Linear(4 * c, more)
        elif self.how == "mlp":
            self.do = nn.Sequential(nn.Linear(c, 2 * c), nn.GELU(), nn.Linear(2 * c, more))
        elif self.how == "attend":
            self.do = Attend(before, "hand", board)
        elif self.how == "convs":
            self.do = nn.Sequential(
                nn.Conv2d(c, more, 3, padding=1),
                nn.BatchNorm2d(more),
                nn.ReLU(),
                nn.Conv2d(more, more, 1),
            )
        elif self.how == "dense":
            self.grow, self.do = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(2 * c, more, 1)
        elif self.how == "filter":
            self.do = OnMap(before, "fft", 1, more)
        elif self.how == "resize":
            self.do = nn.Upsample(scale_factor=0.5, mode="bilinear")
        elif self.how == "mixer":
            self.do = nn.Linear(before.tokens, after.tokens)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self._do(self.before.to_tokens(x))
        if self.how in ("mixer", "prune"):
            self.board.placed = False
        self.board.placed |= self.how in MAPPING_BETWEEN
        if self.before.height != self.after.height and self.board.placed:
            self.board.note((self.path, tokens.clone(), self.after), self.board.entries)
        return self.after.from_tokens(tokens)

    def _do(self, tokens: Tensor) -> Tensor:
        if self.how == "mixer":
            return self.do(tokens.transpose(1, 2)).transpose(1, 2)
        if self.how in ("mlp", "attend"):
            return self.do(tokens)
        if self.how == "prune":
            best = tokens.norm(dim=-1).topk(self.after.tokens).indices.sort().values
            return tokens.gather(1, best[..., None].expand(-1, -1, tokens.shape[-1]))
        return self.after.from_map(self._of_map(tokens))

    def _of_map(self, tokens: Tensor) -> Tensor:
        grid = self.before.to_map(tokens)
        if self.how == "merge":
            corners = [grid[..., i::2, j::2] for i in (0, 1) for j in (0, 1)]
            return self.do(torch.cat(corners, 1).movedim(1, 3)).movedim(3, 1)
        if self.how == "dense":
            grid = torch.cat([grid, self.grow(grid).relu()], 1)
        return self.do(grid)


class Stem(nn.Module):
    def __init__(self, how: str, channels: int) -> None:
        super().__init__()
        self.how = how
        if how == "conv":
            self.do: nn.Module = nn.Conv2d(3, channels, PATCH, PATCH)
        elif how == "overlap":
            self.do = nn.Conv2d(3, channels, 7, PATCH, 3)
        elif how == "convs":
            self.do = nn.Sequential(
                nn.Conv2d(3, channels, 3, 2, 1, bias=False),
                nn.BatchNorm2d(channels),
                nn.ReLU(inplace=True),
                nn.Conv2d(channels, channels, 3, 2, 1),
            )
        elif how == "conv pool":
            self.do = nn.Sequential(
                nn.Conv2d(3, channels, 3, 2, 1), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
            )
        elif how == "focus":
            self.do = nn.Conv2d(12, channels, 2, 2)
        elif how == "pixel_unshuffle":
            self.do = nn.Conv2d(3 * PATCH**2, channels, 1)
        elif how == "shifted":
            self.do = nn.Linear(15 * PATCH**2, channels)
        else:
            self.unfold = nn.Unfold(PATCH, stride=PATCH) if how == "unfold" else nn.Identity()
            self.do = nn.Linear(3 * PATCH**2, channels)

    def forward(self, images: Tensor) -> Tensor:
        if self.how == "unfold":
            return self.do(self.unfold(images).transpose(1, 2))
        if self.how == "f.unfold":
            return self.do(F.unfold(images, PATCH, stride=PATCH).transpose(1, 2))
        if self.how == "focus":
            images = torch.cat([images[..., i::2, j::2] for j in (0, 1) for i in (0, 1)], 1)
        elif self.how == "pixel_unshuffle":
            images = F.pixel_unshuffle(images, PATCH)
        elif self.how == "shifted":
            # The image beside four copies of itself, moved by half a patch (Lee et al. 2021).
            half = PATCH // 2
            moves = [(a, -a, b, -b) for a in (half, -half) for b in (half, -half)]
            images = torch.cat([images, *(F.pad(images, move) for move in moves)], 1)
        if self.how in ("reshape", "shifted"):
            patches = images.unflatten(3, (-1, PATCH)).unflatten(2, (-1, PATCH))
            return self.do(patches.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2))
        return self.do(images)


class Tokens(nn.Module):
    """Adds places to tokens, and tokens that are no positions."""

    COUNTS: ClassVar = {"": 0, "class": 1, "mean": 1, "empty": 1, "distilled": 2, "registers": 3}

    def __init__(self, place: Place, front: str, back: str) -> None:
        super().__init__()
        self.place, self.front = place, front
        self.places = nn.Parameter(torch.randn(1, place.positions, place.channels))
        if place.front and front != "mean":
            self.before = nn.Parameter(torch.randn(1, place.front, place.channels))
        if back:
            self.behind = nn.Parameter(torch.randn(1, place.back, place.channels))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.places
        parts = [x]
        if self.front == "mean":
            parts = [x.mean(1, keepdim=True), x]
        elif self.front == "empty":
            parts = [self.before.expand(len(x), -1, -1), x[:, 1:1], x]
        elif self.place.front:
            parts = [self.before.expand(len(x), -1, -1), x]
        if self.place.back:
            parts.append(self.behind.expand(len(x), -1, -1))
        return torch.cat(parts, 1) if len(parts) > 1 else x


class Head(nn.Module):
    def __init__(self, how: str, place: Place, classes: int) -> None:
        super().__init__()
        self.how, self.place = how, place
        if "norm" in how:
            self.norm = Norm(place, "layer")
        flat = place.positions if "flat" in how else 1
        self.linear = nn.Linear(flat * place.channels, classes)
        if "hidden" in how:
            self.hidden = nn.Linear(place.channels, place.channels)
        if "query" in how:
            self.query = nn.Parameter(torch.randn(place.channels, 1))

    def forward(self, x: Tensor) -> Tensor:
        if "norm" in self.how:
            x = self.norm(x)
        if "adaptive" in self.how:
            return self.linear(F.adaptive_avg_pool2d(x, 1).flatten(1))
        tokens = self.place.to_tokens(x)
        if "class" in self.how:
            return self.linear(tokens[:, 0])
        if "flat" in self.how:
            return self.linear(self.place.split(tokens)[1].flatten(1))
        if "positions" in self.how:
            tokens = self.place.split(tokens)[1]
        if "max" in self.how:
            return self.linear(tokens.amax(1))
        if "query" in self.how:
            weights = (tokens @ self.query).softmax(1)
            return self.linear((weights * tokens).sum(1))
        if "hidden" in self.how:
            return self.linear(self.hidden(tokens.mean(1)).tanh())
        return self.linear(tokens.mean(1))


class Drawn(nn.Module):
    def __init__(self, spec: Network) -> None:
        super().__init__()
        self.spec, self.board = spec, Board()
        side = spec.size // PATCH
        front, back = (Tokens.COUNTS[each] for each in (spec.front, spec.back))
        place = Place(spec.stream, side, side, spec.width, front, back, PATCH, spec.columns)
        self.stem = Stem(spec.stem, spec.width)
        self.first = place
        if spec.stream == "tokens":
            self.tokens = Tokens(place, spec.front, spec.back)
        self.blocks = nn.ModuleList()
        for each in spec.blocks:
            place = self._add(each, place)
        self.head = Head(spec.head, place, spec.classes)
        if spec.unused:
            self.unused = nn.Linear(7, 7)
        if spec.exits:
            ends = [nn.Linear(spec.width, spec.classes) for _ in self.blocks]
            self.exits = nn.ModuleList(ends)
        if spec.counts:
            self.register_buffer("passes", torch.zeros(()))
        for module in self.modules() if spec.hooked else ():
            if isinstance(module, Branch):
                module.register_forward_hook(lambda *args: 1.5 * args[2])
        for name, module in self.named_modules():
            if hasattr(module, "path"):
                module.path = name

    def _add(self, spec: Block | Between, place: Place) -> Place:
        if isinstance(spec, Between):
            after = smaller(place) if spec.how in HALVING else place
            self.blocks.append(BetweenModule(spec, place, after, self.board))
            return after
        units = []
        for unit in spec.units:
            before, place = place, smaller(place) if unit.stride > 1 else place
            units.append(UnitModule(unit, before, place, self.board))
        self.blocks.append(BlockModule(spec, units, self.board))
        return place

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        place = self.first
        if place.stream == "tokens":
            if x.ndim == 3 and place.columns:
                x = x.unflatten(1, (place.height, place.width)).permute(0, 3, 1, 2)
            x = self.tokens(x if x.ndim == 3 else place.from_map(x))
        elif x.ndim == 3:
            x = place.from_tokens(x)
        elif place.stream == "nhwc":
            x = x.permute(0, 2, 3, 1)
        first = next((each for each in self.blocks if not each.unclear), None)
        left: list[Tensor] = []
        for block in self.blocks:
            if block is first:
                self.board.note(("stem", place.to_tokens(x).clone(), place), self.board.entries)
            x = block(x)
            left.append(block.after.to_tokens(x) if self.spec.exits else x)
        logits = self.head(x)
        if self.spec.exits:
            for leave, tokens in zip(self.exits, left, strict=True):
                logits = logits + leave(tokens.mean(1))
        if self.spec.counts:
            self.passes += 1
        return {"logits": logits, "stream": x} if self.spec.returns == "dict" else logits


def smaller(place: Place) -> Place:
    """Return the place of a map of half the height and width."""
    half = replace(place, height=place.height // 2, width=place.width // 2)
    return replace(half, pixel=2 * place.pixel)
