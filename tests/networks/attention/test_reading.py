from collections.abc import Callable, Iterator
from math import sqrt
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import avg_pool2d, pad, scaled_dot_product_attention
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from tests.helpers.attending import found_in, weights_of
from tests.helpers.networks import hooks_of
from vitscope.errors import VitscopeError
from vitscope.networks.attention import reading
from vitscope.networks.attention.reading import Attention, Weights, attending

# Images of 16 x 16 pixels are 4 x 4 tokens of 8 channels, in two heads.
SIZE, SIDE, CHANNELS, HEADS = 16, 4, 8, 2
TOKENS = SIDE**2
IMAGES = torch.randn(3, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(1))
TOLERANCE = {"rtol": 1e-5, "atol": 1e-6}


def grid(rows: int, columns: int) -> np.ndarray:
    """Return the middles of cells of an image, row by row, as shares of its sides."""
    return (np.moveaxis(np.indices((rows, columns)), 0, -1).reshape(-1, 2) + 0.5) / (rows, columns)


Combine = Callable[[Tensor, Tensor, Tensor], Tensor]


class Tokens(nn.Module):
    """Patches as tokens behind some others, whose queries, keys and values are linear in them.

    `combine`, if given, says what attention makes of queries, keys and values.
    """

    def __init__(self, prefix: int = 0, combine: Combine = scaled_dot_product_attention) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.given = combine
        self.stem = nn.Conv2d(3, CHANNELS, SIZE // SIDE, SIZE // SIDE)
        self.prefix = nn.Parameter(torch.randn(1, prefix, CHANNELS))
        self.qkv = nn.Linear(CHANNELS, 3 * CHANNELS)
        with torch.no_grad():
            self.qkv.weight.mul_(5)

    def tokens(self, images: Tensor) -> Tensor:
        """Return tokens, (N, L, C)."""
        patches = self.stem(images).flatten(2).mT
        return torch.cat([self.prefix.expand(len(images), -1, -1), patches], 1)

    def split(self, tokens: Tensor) -> Any:
        """Return queries, keys and values, each (N, heads, L, channels of a head)."""
        each = self.qkv(tokens).unflatten(-1, (3, HEADS, CHANNELS // HEADS))
        return each.permute(2, 0, 3, 1, 4)

    def attend(self, images: Tensor) -> Tensor:
        """Return what attention makes of the tokens, (N, heads, L, channels of a head)."""
        return self.combine(*self.split(self.tokens(images)))

    def combine(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return self.given(query, key, value)

    def forward(self, images: Tensor) -> Tensor:
        return self.attend(images).transpose(1, 2).flatten(2).mean(1)


@torch.no_grad()
def by_hand(model: Tokens, images: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the attention of all tokens to all, in double precision; -inf and False mask."""
    scale = sqrt(CHANNELS // HEADS)
    query, key, _ = model.split(model.tokens(images)).double()
    scores = torch.einsum("nhqc,nhkc->nhqk", query, key) / scale
    if mask is not None:
        plain = mask.dtype is not torch.bool
        scores = scores + mask if plain else scores.masked_fill(~mask, -torch.inf)
    exponentials = (scores - scores.amax(-1, keepdim=True).clamp_min(-1e30)).exp()
    return exponentials / exponentials.sum(-1, keepdim=True).clamp_min(1e-30)


def only(model: nn.Module) -> Attention:
    """Return the one attention of a network, of which none is refused."""
    found = found_in(model, SIZE)
    assert not found.refused
    (attention,) = found.attentions
    return attention


def places_are(attention: Attention, queries: Any, keys: Any) -> None:
    """Compare where queries and keys are: (windows, queries or keys, 2)."""
    np.testing.assert_allclose(attention.queries, queries, atol=1e-6)
    np.testing.assert_allclose(attention.keys, keys, atol=1e-6)


def check_weights(
    model: nn.Module, attention: Attention, expected: Tensor, images: Tensor = IMAGES
) -> None:
    """Compare the weights of the one window of an attention."""
    (read,) = weights_of(model, [attention], images)
    torch.testing.assert_close(read[:, 0], expected, **TOLERANCE)


class WithoutBuffer(Tokens):
    """Has a tensor that no pass on shapes alone can take along: it runs on a CPU alone."""

    def __init__(self, combine: Combine = scaled_dot_product_attention) -> None:
        super().__init__(combine=combine)
        self.shift = torch.randn(1, TOKENS, CHANNELS)

    def tokens(self, images: Tensor) -> Tensor:
        return super().tokens(images) + self.shift


def behind(prefix: int) -> np.ndarray:
    """Return where tokens are behind some that have no place."""
    return np.concatenate([np.full((prefix, 2), np.nan), grid(SIDE, SIDE)])


class OneHead(Tokens):
    """Tokens of three dimensions, without heads."""

    def attend(self, images: Tensor) -> Tensor:
        query, key, value = self.split(self.tokens(images))[:, :, 0]
        return scaled_dot_product_attention(query, key, value)[:, None]


class Pooled(Tokens):
    """All tokens attend to means of four."""

    def attend(self, images: Tensor) -> Tensor:
        tokens = self.tokens(images)
        pooled = avg_pool2d(tokens.mT.unflatten(2, (SIDE, SIDE)), 2).flatten(2).mT
        query, _, _ = self.split(tokens)
        _, key, value = self.split(pooled)
        return scaled_dot_product_attention(query, key, value)


def with_keys_of_the_first(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return scaled_dot_product_attention(query, key[:, :1], value[:, :1], enable_gqa=True)


@torch.no_grad()
def by_pooled_keys(model: Tokens, images: Tensor) -> Tensor:
    query, keys, _ = model.split(model.tokens(images)).double()
    # Keys are linear in tokens: that of a mean is the mean of keys.
    blocks = keys.unflatten(2, (2, 2, 2, 2)).mean((3, 5)).flatten(2, 3)
    return torch.einsum("nhqc,nhkc->nhqk", query, blocks).div(2).softmax(-1)


@torch.no_grad()
def by_first_keys(model: Tokens, images: Tensor) -> Tensor:
    query, key, _ = model.split(model.tokens(images)).double()
    return torch.einsum("nhqc,nkc->nhqk", query, key[:, 0]).div(2).softmax(-1)


ALL, NOWHERE = [behind(0)], [[[np.nan, np.nan]]]
OF_ONE_WINDOW: dict[str, tuple[Tokens, Any, Any, Callable[[Tokens, Tensor], Tensor]]] = {
    "all tokens": (Tokens(), ALL, ALL, by_hand),
    "tokens behind two others": (Tokens(2), [behind(2)], [behind(2)], by_hand),
    "on a CPU alone": (WithoutBuffer(), ALL, ALL, by_hand),
    "one head": (OneHead(), ALL, ALL, lambda *given: by_hand(*given)[:, :1]),
    "queries of the class token": (
        Tokens(1, lambda q, k, v: scaled_dot_product_attention(q[:, :, :1], k, v)),
        NOWHERE,
        [behind(1)],
        lambda *given: by_hand(*given)[:, :, :1],
    ),
    "pooled keys": (Pooled(), ALL, [grid(2, 2)], by_pooled_keys),
    "grouped keys": (Tokens(combine=with_keys_of_the_first), ALL, ALL, by_first_keys),
    "grouped keys on a CPU": (WithoutBuffer(with_keys_of_the_first), ALL, ALL, by_first_keys),
    "keys shared by the rules of shapes": (
        Tokens(combine=lambda q, k, v: scaled_dot_product_attention(q, k[:, :1], v[:, :1])),
        ALL,
        ALL,
        by_first_keys,
    ),
}


@pytest.mark.parametrize("kind", OF_ONE_WINDOW)
def test_weights_are_those_by_hand(kind: str) -> None:
    model, queries, keys, expected = OF_ONE_WINDOW[kind]
    attention, weights = only(model), expected(model, IMAGES)
    heads = weights.shape[1]
    # The module whose forward pass multiplies queries and keys is the network itself.
    assert (attention.name, attention.windows, attention.heads) == ("", 1, heads)
    assert not attention.mixed
    places_are(attention, queries, keys)
    check_weights(model, attention, weights)


def one_per_head() -> Tensor:
    return torch.randn(1, HEADS, 1, TOKENS, generator=torch.Generator().manual_seed(2))


LOWER = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
SPARSE = torch.rand(3, 1, TOKENS, TOKENS, generator=torch.Generator().manual_seed(3)) < 0.4
NOTHING = SPARSE.clone()
NOTHING[:, :, 5] = False
MASKS: dict[str, tuple[dict[str, Any], Tensor | None]] = {
    "causal": ({"is_causal": True}, LOWER),
    "of bool": ({"attn_mask": LOWER.flip(0)}, LOWER.flip(0)),
    "of bool for each image": ({"attn_mask": SPARSE}, SPARSE),
    "that leaves a query nothing": ({"attn_mask": NOTHING}, NOTHING),
    "of numbers": ({"attn_mask": 3 * LOWER.float()}, 3 * LOWER.double()),
    "of numbers for each head": ({"attn_mask": one_per_head()}, one_per_head().double()),
    "of infinities": ({"attn_mask": torch.where(LOWER, 0.0, -torch.inf)}, LOWER),
    "none, and a scale": ({"scale": 1 / sqrt(CHANNELS // HEADS)}, None),
}


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", MASKS)
def test_masks(kind: str, fused: bool) -> None:
    given, mask = MASKS[kind]

    def combine(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        options = dict(given)
        if (each := given.get("attn_mask")) is not None:
            # Of each image its own, also in the pass of two images that finds attention.
            options["attn_mask"] = (each[: len(query)] if each.ndim == 4 else each).to(query.device)
        return scaled_dot_product_attention(query, key, value, **options)

    model = Tokens(combine=combine)
    attention = only(model)
    backend = SDPBackend.FLASH_ATTENTION if fused else SDPBackend.MATH
    with sdpa_kernel(backend):
        check_weights(model, attention, by_hand(model, IMAGES, mask))


def test_the_operations_that_hide_attention_name_what_they_are_given_alike() -> None:
    """Which of them runs depends on the device: they are asked for names, and not run."""
    for name in (
        *("flash_attention_for_cpu", "flash_attention", "efficient_attention", "cudnn_attention"),
        "fused_attention_overrideable",
    ):
        function = getattr(torch.ops.aten, f"_scaled_dot_product_{name}").default
        arguments = {argument.name for argument in function._schema.arguments}
        assert {"query", "key", "is_causal", "scale"} < arguments
        # Flash attention of a GPU takes no mask.
        assert len(arguments & {"attn_mask", "attn_bias"}) == (name != "flash_attention")


class Windows(Tokens):
    """Windows of 2 x 2 tokens behind a roll, with a mask of each window, as Swin has them."""

    def __init__(self, windows_first: bool = False) -> None:
        super().__init__()
        self.windows_first = windows_first
        self.register_buffer("mask", torch.randn(4, 1, 4, 4))

    def tokens(self, images: Tensor) -> Tensor:
        rolled = self.stem(images).permute(0, 2, 3, 1).roll((-1, -1), (1, 2))
        windows = rolled.unflatten(2, (2, 2)).unflatten(1, (2, 2)).transpose(2, 3)
        # (N, rows of windows, columns of windows, rows, columns, C)
        if self.windows_first:
            windows = windows.permute(1, 2, 0, 3, 4, 5)
            return windows.reshape(4 * len(images), 4, CHANNELS)
        return windows.reshape(len(images) * 4, 4, CHANNELS)

    def combine(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = query @ key.mT / 2
        shape = (4, -1) if self.windows_first else (-1, 4)
        mask = self.mask[:, None] if self.windows_first else self.mask
        scores = (scores.unflatten(0, shape) + mask).flatten(0, 1)
        return scores.softmax(-1) @ value


@pytest.mark.parametrize("windows_first", [False, True])
def test_windows_behind_a_roll(windows_first: bool) -> None:
    model = Windows(windows_first)
    attention = only(model)
    rolled = np.roll(grid(4, 4).reshape(4, 4, 2), (-1, -1), (0, 1))
    expected = [
        rolled[row : row + 2, column : column + 2].reshape(4, 2)
        for row in (0, 2)
        for column in (0, 2)
    ]
    # The last window holds the corners of the image.
    np.testing.assert_array_equal(expected[3][[0, 3]], [[7 / 8, 7 / 8], [1 / 8, 1 / 8]])
    places_are(attention, expected, expected)
    (read,) = weights_of(model, [attention], IMAGES)
    mask = model.mask.repeat_interleave(3, 0) if windows_first else model.mask.repeat(3, 1, 1, 1)
    computed = by_hand(model, IMAGES, mask.double())
    expected_weights = (
        computed.unflatten(0, (4, 3)).transpose(0, 1)
        if windows_first
        else computed.unflatten(0, (3, 4))
    )
    torch.testing.assert_close(read, expected_weights, **TOLERANCE)


class Padded(Tokens):
    """A map of 4 x 4 in windows of 3 x 3, which hold more than there is."""

    def tokens(self, images: Tensor) -> Tensor:
        map_ = pad(self.stem(images), (0, 2, 0, 2)).permute(0, 2, 3, 1)
        windows = map_.unflatten(2, (2, 3)).unflatten(1, (2, 3)).transpose(2, 3)
        return windows.reshape(len(images) * 4, 9, CHANNELS)


def test_padded_windows() -> None:
    model = Padded()
    attention = only(model)
    padded = np.full((6, 6, 2), np.nan)
    padded[:4, :4] = grid(4, 4).reshape(4, 4, 2)
    expected = [padded[row : row + 3, i : i + 3].reshape(9, 2) for row in (0, 3) for i in (0, 3)]
    places_are(attention, expected, expected)
    (read,) = weights_of(model, [attention], IMAGES)
    expected_weights = by_hand(model, IMAGES).unflatten(0, (3, 4))
    torch.testing.assert_close(read, expected_weights, **TOLERANCE)


class HeadsFirst(Tokens):
    """Heads lie before images, as products of three dimensions."""

    def attend(self, images: Tensor) -> Tensor:
        each = self.split(self.tokens(images)).transpose(1, 2).flatten(1, 2)
        query, key, value = each
        result = torch.bmm((torch.bmm(query, key.mT) / 2).softmax(-1), value)
        return result.unflatten(0, (HEADS, -1)).transpose(0, 1)


@pytest.mark.parametrize("images", [1, 2, 5])
@pytest.mark.parametrize("kind", [Tokens, HeadsFirst])
def test_batches_of_any_size(kind: Callable[[], Tokens], images: int) -> None:
    model = kind()
    attention = only(model)
    assert attention.heads == HEADS
    batch = torch.randn(images, 3, SIZE, SIZE)
    check_weights(model, attention, by_hand(model, batch), batch)


@pytest.mark.parametrize(
    ("bytes_", "pieces"),
    [
        # Of float32, a head of an image has 4 * 16 * 16 bytes: less than one, one, both of two.
        (1, 6),
        (4 * TOKENS**2, 6),
        (2 * 4 * TOKENS**2 * HEADS, 2),
        (1 << 20, 1),
    ],
)
@pytest.mark.parametrize("kind", [Tokens, HeadsFirst, Windows])
def test_pieces_are_of_the_whole(
    kind: Callable[[], Tokens], bytes_: int, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = kind()
    attention = only(model)
    (together,) = weights_of(model, [attention], IMAGES)
    size = attention.windows * attention.queries.shape[1] * attention.keys.shape[1]
    monkeypatch.setattr(reading, "BYTES_AT_ONCE", bytes_ * size // TOKENS**2)
    counts: list[int] = []

    def count(_: int, weights: Weights) -> None:
        counts.append(len([*weights.read_pieces()]))

    with torch.no_grad(), attending(model, [attention], count):
        model(IMAGES)
    assert counts == [pieces]
    (read,) = weights_of(model, [attention], IMAGES)
    torch.testing.assert_close(read, together, rtol=1e-6, atol=1e-7)


def test_double_precision_stays() -> None:
    model = Tokens().double()
    (read,) = weights_of(model, [only(model)], IMAGES.double())
    expected = by_hand(model, IMAGES.double())
    torch.testing.assert_close(read[:, 0], expected, rtol=1e-12, atol=1e-14)


class Twice(Tokens):
    def forward(self, images: Tensor) -> Tensor:
        query, key, value = self.split(self.tokens(images))
        first = scaled_dot_product_attention(query, key, value)
        second = scaled_dot_product_attention(2 * first, key, value)
        return (first + second).mean(2).flatten(1)


def test_a_module_that_attends_twice() -> None:
    model = nn.Sequential(Twice()).eval()
    attentions = found_in(model, SIZE).attentions
    assert [each.name for each in attentions] == ["0", "0#2"]
    first, second = weights_of(model, attentions, IMAGES)
    torch.testing.assert_close(first[:, 0], by_hand(model[0], IMAGES), **TOLERANCE)
    with torch.no_grad():
        _, key, value = model[0].split(model[0].tokens(IMAGES)).double()
    expected = ((first[:, 0] @ value) @ key.mT).softmax(-1)
    torch.testing.assert_close(second[:, 0], expected, **TOLERANCE)


class Followed(Tokens):
    """Attention whose values are what attention returns: of rows and columns, or of agents."""

    def __init__(self, agents: bool) -> None:
        super().__init__()
        self.agents = agents

    def combine(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if self.agents:
            agent = avg_pool2d(query.mT.flatten(0, 1).unflatten(2, (SIDE, SIDE)), 2)
            agent = agent.flatten(2).unflatten(0, query.shape[:2]).mT
            taken = (agent @ key.mT).softmax(-1) @ value
            return (query @ agent.mT).softmax(-1) @ taken
        rows = [each.unflatten(2, (SIDE, SIDE)) for each in (query, key, value)]
        query, key, value = (each.transpose(2, 3) for each in rows)
        value = ((rows[0] @ rows[1].mT).softmax(-1) @ rows[2]).transpose(2, 3)
        return ((query @ key.mT).softmax(-1) @ value).transpose(2, 3).flatten(2, 3)


@pytest.mark.parametrize("agents", [False, True])
def test_attention_to_what_attention_returns_is_no_third(agents: bool) -> None:
    """As in RMT and agent attention: both are read, and nothing else is told of."""
    found = found_in(Followed(agents).eval(), SIZE)
    counts = [attention.queries.shape[1:2] for attention in found.attentions]
    assert counts == ([(4,), (16,)] if agents else [(4,), (4,)])
    assert not found.refused


class Mixing(Tokens):
    """Heads are mixed before the softmax, by a convolution of one position, and behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.behind = (nn.Conv2d(HEADS, HEADS, 1) for _ in range(2))

    def combine(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return self.behind(self.before(query @ key.mT / 2).softmax(-1)) @ value


def test_heads_that_are_mixed() -> None:
    model = Mixing()
    attention = only(model)
    assert attention.mixed
    places_are(attention, [grid(4, 4)], [grid(4, 4)])
    (read,) = weights_of(model, [attention], IMAGES)
    with torch.no_grad():
        query, key, _ = model.split(model.tokens(IMAGES)).double()
        mixed = model.before.double()(query @ key.mT / 2)
    torch.testing.assert_close(read[:, 0], mixed.softmax(-1), **TOLERANCE)


class Scored(Tokens):
    """Tokens are scaled by the attention that they get from all heads, as to choose among them."""

    def attend(self, images: Tensor) -> Tensor:
        query, key, value = self.split(self.tokens(images))
        weights = (query @ key.mT / sqrt(CHANNELS // HEADS)).softmax(-1)
        return weights @ value * weights.mean((1, 2))[:, None, :, None]


def test_another_use_of_weights_mixes_no_heads() -> None:
    model = Scored()
    assert not only(model).mixed
    check_weights(model, only(model), by_hand(model, IMAGES))


class Gate(Tokens):
    """A softmax of what is no product of two things that depend on the images."""

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.tokens(images)
        gate = self.qkv(tokens).softmax(-1)
        return (gate * gate.mean(1, keepdim=True)).mean(1)


class Learned(Tokens):
    """Queries are weights, the same for all images."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(1, HEADS, 3, CHANNELS // HEADS))

    def combine(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return (self.query @ key.mT).softmax(-1) @ value


class Behind(Tokens):
    """Attends, and throws it away."""

    def forward(self, images: Tensor) -> Tensor:
        super().forward(images)
        return self.tokens(images).mean(1)


class Channels(Tokens):
    def attend(self, images: Tensor) -> Tensor:
        query, key, value = self.split(self.tokens(images)).mT
        return ((query @ key.mT).softmax(-1) @ value).mT


class Across(Tokens):
    def attend(self, images: Tensor) -> Tensor:
        tokens = self.tokens(images).flatten(0, 1)[None]
        query, key, value = self.split(tokens)
        result = scaled_dot_product_attention(query, key, value)
        return result[0].unflatten(1, (len(images), -1)).transpose(0, 1)


class Sorted(Tokens):
    """Nobody can tell where tokens are that are sorted by what they hold."""

    def tokens(self, images: Tensor) -> Tensor:
        return super().tokens(images).sort(1).values


@pytest.mark.parametrize(
    ("kind", "reasons"),
    [
        *((no_attention, []) for no_attention in (Gate, Learned, Behind)),
        (Channels, ["channels attend to channels there, and not positions to positions"]),
        (Across, ["images attend to each other"]),
        (
            lambda: Tokens(combine=lambda q, k, v: (q @ k.mT).softmax(-2) @ v),
            ["its softmax is not over the keys"],
        ),
        (
            lambda: Tokens(combine=lambda q, k, v: (k @ q.mT).mT.softmax(-1) @ v),
            ["its queries are moved between their product and the softmax"],
        ),
        (Sorted, ["nobody can tell where in the image its queries and keys are"]),
    ],
)
def test_what_cannot_be_read(kind: Callable[[], nn.Module], reasons: list[str]) -> None:
    found = found_in(kind().eval(), SIZE)
    assert not found.attentions
    assert [*found.refused.values()] == reasons


def left_behind(model: nn.Module) -> tuple[int, int, bool]:
    modes = len(_get_current_dispatch_mode_stack())
    return sum(map(len, hooks_of(model))), modes, torch.backends.mha.get_fastpath_enabled()


@pytest.fixture(params=[True, False])
def fast_path(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Let torch take its fast path, or not, as some of vitscope has it."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(request.param)
    yield request.param
    torch.backends.mha.set_fastpath_enabled(enabled)


def test_nothing_is_left_behind(fast_path: bool) -> None:
    model = Tokens()
    attention = only(model)
    before = left_behind(model)
    assert before == (0, 0, fast_path)

    def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"), attending(model, [attention], fail):
        model(IMAGES)
    assert left_behind(model) == before
    # Nor is anything of the first pass in the next.
    check_weights(model, attention, by_hand(model, IMAGES))
    assert left_behind(model) == before


@pytest.mark.parametrize("kind", [Tokens, Windows, HeadsFirst, Twice, Mixing])
def test_reading_leaves_the_logits_as_they_are(kind: Callable[[], nn.Module]) -> None:
    model = kind().eval()
    attentions = found_in(model, SIZE).attentions
    with torch.inference_mode():
        plain = model(IMAGES)
        with attending(model, attentions, lambda _, weights: [*weights.read_pieces()]):
            read = model(IMAGES)
    assert torch.equal(plain, read)


class Choosing(Twice):
    """Does another thing when it is told to."""

    path = "as recorded"

    def tokens(self, images: Tensor) -> Tensor:
        tokens = super().tokens(images)
        return tokens[:, 1:] if self.path == "fewer tokens" else tokens

    def forward(self, images: Tensor) -> Tensor:
        return (
            self.attend(images).mean(2).flatten(1)
            if self.path == "once"
            else super().forward(images)
        )


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("once", "it computed 1 of 2 attentions. Networks that choose their path by the images"),
        ("fewer tokens", r"of '0' has the shape \(6, 15, 15\), where \(6, 16, 16\) was recorded"),
    ],
)
def test_a_network_that_takes_another_path(path: str, sentence: str) -> None:
    model = nn.Sequential(Choosing()).eval()
    attentions = found_in(model, SIZE).attentions
    weights_of(model, attentions, IMAGES)
    model[0].path = path
    with pytest.raises(VitscopeError, match=sentence):
        weights_of(model, attentions, IMAGES)
