"""Branches: what they compute, and of which kind each is by how it is made."""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.drawn.attention import OF_POSITIONS, OF_TOKENS, Attend
from tests.drawn.board import Board
from tests.drawn.places import Place
from tests.drawn.specs import Term, Unit


class Mlp(nn.Module):
    """Two layers, written in several ways; `wide` is how wide it is between them."""

    def __init__(self, place: Place, how: str) -> None:
        super().__init__()
        self.place, self.how = place, how
        channels, wide = place.channels, 2 * place.channels
        if how == "mlp raw":
            ends = (wide, channels), (channels, wide)
            self.weights = nn.ParameterList(nn.Parameter(torch.randn(each)) for each in ends)
            return
        self.first = nn.Linear(channels, 2 * wide if how == "mlp gated" else wide)
        self.second = nn.Linear(wide, channels)
        self.act = nn.ReLU(inplace=True) if how == "mlp inplace" else nn.GELU()
        if how == "mlp depthwise":
            self.between = nn.Conv2d(wide, wide, 3, padding=1, groups=wide)
        if how == "mlp residual":
            self.inner = nn.Linear(wide, wide)

    def forward(self, h: Tensor) -> Tensor:
        if self.how == "mlp raw":
            return F.linear(F.gelu(F.linear(h, self.weights[0])), self.weights[1])
        h = self.first(h)
        if self.how == "mlp gated":
            gate, h = h.chunk(2, -1)
            return self.second(F.silu(gate) * h)
        if self.how == "mlp depthwise":
            _, positions, _ = self.place.split(h)
            mixed = self.place.from_map(self.between(self.place.to_map(positions)))
            h = self.place.around(h, mixed)
        if self.how == "mlp residual":
            h = h + self.inner(h).relu()
        return self.second(self.act(h))


class OnMap(nn.Module):
    """What works on a map (images, channels, height, width) of the positions."""

    def __init__(self, place: Place, how: str, stride: int, channels: int) -> None:
        super().__init__()
        c = place.channels
        self.how = how
        if how == "conv":
            self.do = nn.Sequential(
                nn.Conv2d(c, channels, 3, stride, 1, bias=False),
                nn.BatchNorm2d(channels),
                nn.ReLU(inplace=True),
                nn.Conv2d(channels, channels, 3, padding=1),
            )
        elif how == "conv 1":
            self.do = nn.Conv2d(c, channels, 3, stride, 1)
        elif how == "depthwise":
            self.do = nn.Sequential(
                nn.Conv2d(c, c, 3, stride, 1, groups=c), nn.GELU(), nn.Conv2d(c, channels, 1)
            )
        elif how == "bottleneck":
            self.do = nn.Sequential(
                nn.Conv2d(c, c // 2, 1),
                nn.ReLU(),
                nn.Conv2d(c // 2, c // 2, 3, stride, 1),
                nn.ReLU(),
                nn.Conv2d(c // 2, channels, 1),
            )
        elif how == "pointwise":
            self.do = nn.Sequential(nn.Conv2d(c, 2 * c, 1), nn.GELU(), nn.Conv2d(2 * c, c, 1))
        elif how == "fft":
            size = place.height, place.width // 2 + 1
            self.filter = nn.Parameter(torch.randn(c, *size, 2))

    def forward(self, h: Tensor) -> Tensor:
        if self.how == "pool":
            return F.avg_pool2d(h, 3, 1, 1, count_include_pad=False)
        if self.how == "fft":
            mixed = torch.fft.rfft2(h, norm="ortho") * torch.view_as_complex(self.filter)
            return torch.fft.irfft2(mixed, s=h.shape[-2:], norm="ortho")
        return self.do(h)


class OnTokens(nn.Module):
    """What mixes tokens, or weighs channels."""

    def __init__(self, place: Place, how: str) -> None:
        super().__init__()
        self.how = how
        c = place.channels
        if how == "mixer":
            self.mix = nn.Sequential(
                nn.Linear(place.tokens, 12), nn.GELU(), nn.Linear(12, place.tokens)
            )
        elif how == "squeeze":
            self.squeeze, self.excite = nn.Linear(c, c // 2), nn.Linear(c // 2, c)
        elif how == "experts":
            self.choose = nn.Linear(c, 3)
            self.experts = nn.Parameter(torch.randn(3, c, c))
        elif how == "context":
            self.look, self.of_all = nn.Linear(c, 1), nn.Linear(c, c)
        elif how == "conv1d":
            self.conv = nn.Conv1d(c, c, 3, padding=1)
        else:
            self.into, self.out = nn.Linear(c, 2 * c), nn.Linear(c, c)
            self.decay = nn.Parameter(torch.rand(c))

    def forward(self, h: Tensor) -> Tensor:
        if self.how == "mixer":
            return self.mix(h.transpose(1, 2)).transpose(1, 2)
        if self.how == "squeeze":
            return h * self.excite(self.squeeze(h.mean(1, keepdim=True)).relu()).sigmoid()
        if self.how == "experts":
            # A mixture of experts: a product that sums over experts, not over tokens.
            made = torch.einsum("nlc,ecd->nled", h, self.experts).relu()
            return torch.einsum("nle,nled->nld", self.choose(h).softmax(-1), made)
        if self.how == "context":
            # The context of the whole image (GCNet), the same for all tokens.
            whole = self.look(h).softmax(1).transpose(1, 2) @ h
            return h * self.of_all(whole).sigmoid()
        if self.how == "conv1d":
            return self.conv(h.transpose(1, 2)).transpose(1, 2)
        u, gate = self.into(h).chunk(2, -1)
        return self.out(SCANS[self.how](u, self.decay.sigmoid()) * F.silu(gate))


def _loop(u: Tensor, decay: Tensor) -> Tensor:
    state = torch.zeros_like(u[:, 0])
    states = []
    for token in u.unbind(1):
        state = decay * state + token
        states.append(state)
    return torch.stack(states, 1)


def _lerp(u: Tensor, decay: Tensor) -> Tensor:
    """Return the states of a recurrence whose decay depends on the token."""
    state = torch.zeros_like(u[:, 0])
    states = []
    for token in u.unbind(1):
        state = torch.lerp(token, state, (decay * token).sigmoid())
        states.append(state)
    return torch.stack(states, 1)


def _difference(u: Tensor, decay: Tensor) -> Tensor:
    """Return the states of a recurrence as torch computes a GRU's."""
    state = torch.zeros_like(u[:, 0])
    states = []
    for token in u.unbind(1):
        state = (state - token) * decay + token
        states.append(state)
    return torch.stack(states, 1)


def _doubling(u: Tensor, decay: Tensor) -> Tensor:
    """Return the same as the loop, by sums over stretches that double (Hillis and Steele)."""
    reach, power = 1, decay
    while reach < u.shape[1]:
        u = u + power * F.pad(u, (0, 0, reach, 0))[:, : u.shape[1]]
        reach, power = 2 * reach, power * power
    return u


SCANS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "scan": _loop,
    "lerp": _lerp,
    "difference": _difference,
    "cumsum": lambda u, decay: (u * decay).cumsum(1) / u.shape[1] ** 0.5,
    "doubling": _doubling,
}
MLPS = ("mlp", "mlp raw", "mlp gated", "mlp inplace", "mlp depthwise", "mlp residual")
STRIDING = ("conv", "conv 1", "depthwise", "bottleneck")
ON_MAPS = (*STRIDING, "pointwise", "pool", "fft")
# Behind these tokens are a map again, whatever mixed them before; a Fourier transform mixes them.
MAPPING = (*STRIDING, "pool", "mlp depthwise")
ON_TOKENS = ("mixer", "squeeze", "experts", "context", "conv1d", *SCANS)
ATTENTIONS = (*OF_TOKENS, *OF_POSITIONS)
WHAT = (*MLPS, *ON_MAPS, *ON_TOKENS, *(f"attend {how}" for how in ATTENTIONS))
SCALES = ("", "layer", "rezero", "gate", "squeeze", "drop path", "project", "dropout")


# What a sum of several branches without attention may be said to be: the first of these in it.
KINDS = ("ssm", "conv", "mixing", "mlp", "pool")


def kind_of(what: str) -> str:
    if what.startswith("attend"):
        return "msa"
    if what in STRIDING or what == "conv1d":
        return "conv"
    if what in SCANS:
        return "ssm"
    if what in ("mixer", "fft"):
        return "mixing"
    return "pool" if what == "pool" else "mlp"


def kinds_of(unit: Unit) -> frozenset[str]:
    """Return the kinds that a sum of a stream and branches may be said to be of."""
    # What projects or weighs a pooled map by a matrix is no longer a pool.
    weighed = any(word in unit.add for word in ("g *", "W"))
    found = [
        "mlp"
        if kind == "pool" and (weighed or term.scale in ("squeeze", "project", "gate"))
        else kind
        for term, kind in ((term, kind_of(term.what)) for term in unit.terms)
    ]
    if "msa" in found:
        return frozenset({"msa"} if {*found} == {"msa"} else {"parallel"})
    order = ("ssm", "conv", "mixing", "mlp", "pool")
    return frozenset({next(kind for kind in order if kind in found)})


def kinds_within(units: Sequence[Unit]) -> frozenset[str]:
    """Return the kinds of a branch that ends with a matrix, and has these sums in it."""
    found = frozenset[str]().union(*(kinds_of(unit) for unit in units))
    whats = {term.what.removeprefix("attend ") for unit in units for term in unit.terms}
    if found & {"msa", "parallel"}:
        # A softmax tells attention from a recurrence: without one, both may be said.
        either = whats & {*SCANS} and whats & {"sigmoid", "linear", "exp", "log_softmax"}
        return frozenset({"msa", "ssm"} if either else {"msa"})
    # What projects a pooled map by a matrix is no longer a pool.
    return frozenset({next((kind for kind in ("ssm", "conv", "mixing") if kind in found), "mlp")})


class Branch(nn.Module):
    """A branch of a stream: takes what is laid out as the stream, and returns it so."""

    def __init__(self, term: Term, before: Place, after: Place, board: Board) -> None:
        super().__init__()
        self.term, self.before, self.after = term, before, after
        self.path, self.unclear = "", "random" if term.scale == "dropout" else ""
        what = term.what
        if what.startswith("attend "):
            self.do: nn.Module = Attend(before, what.removeprefix("attend "), board)
        elif what in MLPS:
            self.do = Mlp(before, what)
        elif what in ON_MAPS:
            stride = before.height // after.height
            self.do = OnMap(before, what, stride, after.channels)
        else:
            self.do = OnTokens(before, what)
        c = after.channels
        if term.scale == "layer":
            self.scale = nn.Parameter(0.5 + torch.rand(c))
        elif term.scale == "rezero":
            self.scale = nn.Parameter(0.5 + torch.rand(()))
        elif term.scale == "gate":
            self.gate = nn.Linear(c, c)
        elif term.scale == "squeeze":
            self.squeeze = nn.Sequential(
                nn.Linear(c, c // 2), nn.ReLU(), nn.Linear(c // 2, c), nn.Sigmoid()
            )
        elif term.scale == "project":
            self.project = nn.Linear(c, c)
        elif term.scale == "drop path":
            self.drop = DropPath()

    def forward(self, h: Tensor) -> Tensor:
        if self.term.what in ON_MAPS and self.before.stream == "nchw":
            made = self.do(h)
            if not self.term.scale:
                return made
            return self.after.from_tokens(self._scaled(self.after.to_tokens(made)))
        tokens = self.before.to_tokens(h)
        if self.term.what in ON_MAPS:
            _, positions, _ = self.before.split(tokens)
            made = self.before.from_map(self.do(self.before.to_map(positions)))
            made = self.before.around(tokens, made)
        else:
            made = self.do(tokens)
        return self.after.from_tokens(self._scaled(made))

    def _scaled(self, f: Tensor) -> Tensor:
        scale = self.term.scale
        if scale in ("layer", "rezero"):
            return f * self.scale
        if scale == "gate":
            return f * self.gate(f).sigmoid()
        if scale == "squeeze":
            return f * self.squeeze(f.mean(1, keepdim=True))
        if scale == "project":
            return self.project(f)
        if scale == "dropout":
            # As people forget it: in evaluation too.
            return F.dropout(f, 0.2)
        return self.drop(f) if scale == "drop path" else f


class DropPath(nn.Module):
    """Leaves a branch out for some images, in training."""

    def forward(self, f: Tensor) -> Tensor:
        if not self.training:
            return f
        return f * (torch.rand(len(f), *[1] * (f.ndim - 1), device=f.device) < 0.9)
