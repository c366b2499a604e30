import random

from tests.drawn.additions import SPELLINGS, count_terms, needs_front, needs_tokens
from tests.drawn.modules import HALVING, PATCH, Tokens
from tests.drawn.specs import Between, Block, Network, Term, Unit
from tests.drawn.terms import ATTENTIONS, MLPS, ON_MAPS, ON_TOKENS, SCALES, STRIDING

STEMS = (
    *("conv", "overlap", "convs", "conv pool", "unfold", "f.unfold", "reshape", "focus"),
    *("pixel_unshuffle", "shifted"),
)
NORMS = {
    "tokens": ("layer", "rms", "by hand", "batch", "instance"),
    "nhwc": ("layer", "rms", "by hand", "batch", "instance"),
    "nchw": ("batch", "layer", "group", "instance", "rms"),
}
HEADS = {
    "tokens": ("mean", "norm mean", "positions", "flat", "max", "hidden", "query"),
    "nhwc": ("mean", "norm mean", "flat"),
    "nchw": ("mean", "adaptive", "norm adaptive", "flat"),
}
SHORTCUTS = ("conv", "pool conv", "long", "pad", "pool")
PLACEMENTS = ("pre", "post", "none", "both", "branch")
WAYS = (
    *("", "inline", "loop", "twice", "alias", "checkpoint", "shared", "residual", "tuple"),
    "hyper",
)
SAME = ("mixer", "mlp", "attend", "convs", "dense", "filter")
BETWEENS = (*HALVING, *SAME)


def draw(seed: int) -> Network:
    return _Drawing(random.Random(seed)).network(seed)


class _Drawing:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        # Some are plain but for a few words, so that each word is seen alone too.
        self._odd = chance.choice((0.2, 0.5, 1.0))

    def _often(self, odds: float) -> bool:
        return self._chance.random() < odds * self._odd

    def _either(self, common: str, *others: str, rare: float = 0.3) -> str:
        return self._chance.choice(others) if self._often(rare) else common

    def network(self, seed: int) -> Network:
        chance = self._chance
        self.stream = chance.choice(("tokens", "tokens", "nchw", "nhwc"))
        self.size = chance.choice((16, 16, 32))
        self.front = self.back = ""
        if self.stream == "tokens":
            self.front = self._either("", *[each for each in Tokens.COUNTS if each], rare=0.4)
            self.back = self._either("", "class", "registers", rare=0.1)
        self.placement = self._either(*PLACEMENTS, rare=0.45)
        self.norm = self._either(NORMS[self.stream][0], *NORMS[self.stream][1:])
        side = self.size // PATCH
        blocks: list[Block | Between] = []
        for position in range(chance.randint(2, 4)):
            if position and isinstance(blocks[-1], Block) and self._often(0.3):
                how = chance.choice(BETWEENS)
                plain = not self.front and not self.back
                if how in ("mixer", "mlp", "attend") or (how in SAME and plain):
                    blocks.append(Between(how))
                elif side > 4 and plain and (how != "prune" or self.stream == "tokens"):
                    side //= 2
                    blocks.append(Between(how))
            block, side = self._block(side)
            blocks.append(block)
        heads = HEADS[self.stream] + (("class", "norm class") if self.front else ())
        return Network(
            seed=seed,
            size=self.size,
            width=chance.choice((8, 12, 16)),
            classes=chance.randint(3, 6),
            stem=chance.choice(STEMS),
            stream=self.stream,
            front=self.front,
            back=self.back,
            blocks=tuple(blocks),
            head=chance.choice(heads),
            columns=self.stream == "tokens" and self._often(0.1),
            unused=self._often(0.1),
            exits=self._often(0.08),
            counts=self._often(0.05),
            hooked=self._often(0.05),
            returns=self._either("", "dict", rare=0.1),
        )

    def _block(self, side: int) -> tuple[Block, int]:
        how = self._either(*WAYS, rare=0.25)
        units = []
        for _ in range(self._chance.randint(1, 2)):
            strided = side > 4 and self.stream == "nchw" and self._chance.random() < 0.25
            if strided and how in ("", "checkpoint"):
                units.append(self._unit(2))
                side //= 2
            else:
                units.append(self._unit(1))
        return Block((units[0],) * len(units) if how == "shared" else tuple(units), how), side

    def _unit(self, stride: int) -> Unit:
        chance = self._chance
        shortcut = ""
        if stride > 1:
            shortcut = chance.choice(SHORTCUTS)
        elif self.stream == "nchw":
            shortcut = self._either("", *SHORTCUTS[:4], rare=0.1)
        inside = ""
        if self.placement != "post" and self.stream != "nhwc":
            names = ("sequence", "channels") if self.stream == "tokens" else ("channels",)
            inside = self._either("", *names, rare=0.12)
        # Most sums are of one branch, and written as most people write them.
        if not self._often(0.5):
            add = "x = x + a"
        else:
            wanted = chance.choice((1, 1, 1, 2, 2, 3))
            tokens = self.stream == "tokens" and not inside
            add = chance.choice(
                [
                    each
                    for each in SPELLINGS
                    if count_terms(each) == wanted
                    and (tokens or not needs_tokens(each))
                    and (self.front in ("class", "mean") or not needs_front(each))
                ]
            )
        terms = tuple(self._term(stride) for _ in range(count_terms(add)))
        if shortcut == "long" and any(term.what == "pool" for term in terms):
            # Whoever reads these takes the pool for the shortcut: it alone is linear.
            shortcut = "conv"
        norm = self.placement if self.placement == "none" else f"{self.placement} {self.norm}"
        act = ""
        if self.stream == "nchw" and self.placement in ("none", "branch") and not inside:
            act = self._either("", "relu", "relu_", rare=0.4)
        return Unit(terms, add, norm, shortcut, stride, inside, act)

    def _term(self, stride: int) -> Term:
        chance = self._chance
        if stride > 1:
            return Term(chance.choice(STRIDING), self._scale())
        families = {
            "attention": [f"attend {how}" for how in ATTENTIONS],
            "mlp": MLPS,
            "map": [each for each in ON_MAPS if each != "pool" or self.placement != "none"],
            "tokens": ON_TOKENS,
        }
        odds = {"nchw": (2, 2, 5, 1), "nhwc": (3, 3, 3, 1), "tokens": (4, 3, 1, 2)}[self.stream]
        (family,) = chance.choices([*families], odds)
        return Term(chance.choice(families[family]), self._scale())

    def _scale(self) -> str:
        if self._often(0.01):
            return "dropout"
        return self._either(*[each for each in SCALES if each != "dropout"], rare=0.3)
