from collections.abc import Iterator
from dataclasses import dataclass, fields


class Spec:
    """What is printed without what is as by default."""

    def __repr__(self) -> str:
        given = [
            # What a spec is mainly of stands first, without a name.
            repr(value)
            if field.name in ("what", "units", "terms", "how") and not place
            else f"{field.name}={value!r}"
            for place, field in enumerate(fields(self))  # type: ignore[arg-type]
            if (value := getattr(self, field.name)) != field.default
        ]
        return f"{type(self).__name__}({', '.join(given)})"


@dataclass(frozen=True, repr=False)
class Term(Spec):
    what: str = "mlp"
    scale: str = ""


@dataclass(frozen=True, repr=False)
class Unit(Spec):
    """A sum of the stream and branches; `add` is the code that adds them (`additions.py`).

    `norm` says where it normalizes, and by what; `inside` is the layout in which it adds.
    """

    terms: tuple[Term, ...] = (Term(),)
    add: str = "x = x + a"
    norm: str = "pre layer"
    shortcut: str = ""
    stride: int = 1
    inside: str = ""
    act: str = ""


@dataclass(frozen=True, repr=False)
class Block(Spec):
    units: tuple[Unit, ...] = (Unit(),)
    how: str = ""


@dataclass(frozen=True, repr=False)
class Between(Spec):
    """What stands between blocks, without a residual."""

    how: str = "conv"


@dataclass(frozen=True, repr=False)
class Network(Spec):
    """A network: `stream` is its layout, `front` and `back` are tokens that are no positions.

    `columns` has its tokens stand column by column; `unused` has weights that nothing reads. With
    `exits` the head reads the stream behind each block; with `counts` each pass changes a buffer;
    with `hooked` a forward hook changes what each branch returns.
    """

    seed: int = 0
    size: int = 16
    width: int = 8
    classes: int = 4
    stem: str = "conv"
    stream: str = "tokens"
    front: str = ""
    back: str = ""
    blocks: tuple[Block | Between, ...] = (Block(), Block())
    head: str = "mean"
    columns: bool = False
    unused: bool = False
    exits: bool = False
    counts: bool = False
    hooked: bool = False
    returns: str = ""

    def units(self) -> Iterator[Unit]:
        for block in self.blocks:
            if isinstance(block, Block):
                yield from block.units


_SPECS = {kind.__name__: kind for kind in (Term, Unit, Block, Between, Network)}


def read(text: str) -> Network:
    spec = eval(text, dict(_SPECS))
    if not isinstance(spec, Network):
        raise TypeError(f"{text!r} is no Network")
    return spec
