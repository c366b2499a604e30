"""Attention, computed in many ways; what it attends to is computed by hand beside."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.drawn.board import Attended, Board, Places
from tests.drawn.places import Place

# Of all tokens, and of positions alone: tokens in front and behind pass these by.
OF_TOKENS = (
    *("hand", "sdpa", "mha", "mha seq", "mha weights", "einsum", "exp", "log_softmax", "sigmoid"),
    *("sink", "null", "rotary", "relative", "linear", "channel", "transposed", "talking", "normed"),
    *("cosine", "one key head", "masked", "sdpa masked", "float64", "permuted", "mixed keys"),
    "latents",
)
WINDOWED = ("windows", "shifted", "sdpa windows", "grid", "rows")
OF_POSITIONS = (*WINDOWED, "pooled")
# They have no softmax of products of positions, or of keys that have no place: what they attend to
# is not read, or without distances, and that is told.
UNREAD = ("sigmoid", "linear", "channel", "mixed keys")
HEADS = 2


class Attend(nn.Module):
    def __init__(self, place: Place, how: str, board: Board) -> None:
        super().__init__()
        self.place, self.how, self.board = place, how, board
        self.path = ""
        channels = place.channels
        if how.startswith("mha"):
            self.mha = nn.MultiheadAttention(channels, HEADS, batch_first=how != "mha seq")
        else:
            self.qkv = nn.Linear(channels, 3 * channels)
            self.project = nn.Linear(channels, channels)
        if how in ("sink", "null"):
            self.none = nn.Parameter(torch.randn(2, HEADS, 1, channels // HEADS))
        if how == "relative":
            self.bias = nn.Parameter(torch.randn(HEADS, place.tokens, place.tokens))
        if how == "talking":
            self.talk = nn.Parameter(torch.randn(HEADS, HEADS))
        if how == "normed":
            self.norms = nn.ModuleList(nn.LayerNorm(channels // HEADS) for _ in "qk")
        if how in ("masked", "sdpa masked"):
            mask = torch.rand(place.tokens, place.tokens) < 0.7
            self.register_buffer("mask", mask | torch.eye(place.tokens, dtype=torch.bool))
        if how == "permuted":
            self.register_buffer("order", torch.randperm(place.tokens))
        if how == "mixed keys":
            self.mix = nn.Parameter(torch.randn(place.tokens, place.tokens))
        if how == "latents":
            self.latents = nn.Parameter(torch.randn(3, channels))
        if how == "rotary":
            angles = torch.randn(place.tokens, channels // HEADS // 2)
            self.register_buffer("cos", angles.cos().repeat(1, 2))
            self.register_buffer("sin", angles.sin().repeat(1, 2))

    def forward(self, h: Tensor) -> Tensor:
        if self.how.startswith("mha"):
            return self._by_module(h)
        if self.how in OF_POSITIONS:
            positions = self.place.split(h)[1]
            return self.place.around(h, self._of_positions(positions))
        if self.how == "permuted":
            h = h[:, self.order]
        q, k, v = self._heads(self.qkv(h))
        if self.how == "latents":
            # Latents attend to tokens, and tokens to latents.
            latents = self.latents.unflatten(1, (HEADS, -1)).transpose(0, 1)
            k = v = (latents @ k.transpose(-2, -1)).softmax(-1) @ v
        elif self.how == "rotary":
            q, k = self._rotate(q), self._rotate(k)
        elif self.how == "normed":
            q, k = self.norms[0](q), self.norms[1](k)
        elif self.how == "cosine":
            q, k = 4 * F.normalize(q, dim=-1), 4 * F.normalize(k, dim=-1)
        elif self.how == "one key head":
            k, v = k[:, :1], v[:, :1]
        elif self.how == "mixed keys":
            k = self.mix @ k
        self._note(q, k)
        out = self.project(self._attend(q, k, v).transpose(1, 2).flatten(2))
        return out[:, self.order.argsort()] if self.how == "permuted" else out

    def _heads(self, qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = qkv.unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        return q, k, v

    def _rotate(self, x: Tensor) -> Tensor:
        first, second = x.chunk(2, -1)
        return x * self.cos + torch.cat([-second, first], -1) * self.sin

    def _attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scale = q.shape[-1] ** -0.5
        how = self.how
        if how == "sdpa":
            return F.scaled_dot_product_attention(q, k, v)
        if how == "sdpa masked":
            return F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask)
        if how == "einsum":
            scores = torch.einsum("nhqd,nhkd->nhqk", q * scale, k)
            return torch.einsum("nhqk,nhkd->nhqd", scores.softmax(-1), v)
        if how == "linear":
            q, k = F.elu(q) + 1, F.elu(k) + 1
            return q @ (k.transpose(-2, -1) @ v) / (q @ k.sum(-2)[..., None])
        if how == "channel":
            return v @ (q.transpose(-2, -1) @ k * scale).softmax(-1).transpose(-2, -1)
        if how == "null":
            k, v = (
                torch.cat([each, none.expand(len(each), -1, -1, -1)], 2)
                for each, none in zip((k, v), self.none, strict=True)
            )
        if how == "transposed":
            # The products of keys and queries, turned round.
            return (k @ q.transpose(-2, -1) * scale).transpose(-2, -1).softmax(-1) @ v
        scores = q @ k.transpose(-2, -1) * scale
        if how == "relative":
            scores = scores + self.bias
        if how == "masked":
            scores = scores.masked_fill(~self.mask, float("-inf"))
        if how == "talking":
            weights = torch.einsum("nhqk,hg->ngqk", scores.softmax(-1), self.talk)
            return weights @ v
        if how == "float64":
            return scores.double().softmax(-1).to(v.dtype) @ v
        if how == "exp":
            raised = (scores - scores.amax(-1, keepdim=True)).exp()
            return raised / raised.sum(-1, keepdim=True) @ v
        if how == "log_softmax":
            return scores.log_softmax(-1).exp() @ v
        if how == "sigmoid":
            return scores.sigmoid() / scores.shape[-1] @ v
        if how == "sink":
            sink = self.none[0, :, :, :1].expand(len(q), -1, q.shape[2], -1)
            return torch.cat([scores, sink], -1).softmax(-1)[..., :-1] @ v
        return scores.softmax(-1) @ v

    def _by_module(self, h: Tensor) -> Tensor:
        q, k, _ = self._heads(F.linear(h, self.mha.in_proj_weight, self.mha.in_proj_bias))
        self._note(q, k)
        weights = self.how == "mha weights"
        if self.how == "mha seq":
            h = h.transpose(0, 1)
            return self.mha(h, h, h, need_weights=weights)[0].transpose(0, 1)
        return self.mha(h, h, h, need_weights=weights)[0]

    def _of_positions(self, h: Tensor) -> Tensor:
        if self.how == "pooled":
            pooled = F.avg_pool2d(self.place.to_map(h), 2).flatten(2).transpose(1, 2)
            q, (k, v) = self._heads(self.qkv(h))[0], self._heads(self.qkv(pooled))[1:]
            self._note(q, k)
            return self.project(self._attend(q, k, v).transpose(1, 2).flatten(2))
        grid = self.place.to_map(h).permute(0, 2, 3, 1)
        if self.how == "shifted":
            grid = grid.roll((-1, -1), (1, 2))
        windows = self._windows(grid)
        q, k, v = self._heads(self.qkv(windows))
        self._note(q, k)
        fused = self.how.startswith("sdpa")
        out = F.scaled_dot_product_attention(q, k, v) if fused else self._attend(q, k, v)
        out = self.project(out.transpose(1, 2).flatten(2))
        out = self._together(out, len(h))
        if self.how == "shifted":
            out = out.roll((1, 1), (1, 2))
        return self.place.from_map(out.permute(0, 3, 1, 2))

    def _windows(self, grid: Tensor) -> Tensor:
        if self.how == "rows":
            return grid.flatten(0, 1)
        rows, columns = self.place.height // 2, self.place.width // 2
        if self.how == "grid":
            # Each window has every second row and column.
            windows = grid.unflatten(2, (columns, 2)).unflatten(1, (rows, 2))
            return windows.permute(0, 2, 4, 1, 3, 5).flatten(3, 4).flatten(0, 2)
        windows = grid.unflatten(2, (2, columns)).unflatten(1, (2, rows))
        return windows.permute(0, 1, 3, 2, 4, 5).flatten(3, 4).flatten(0, 2)

    def _together(self, windows: Tensor, images: int) -> Tensor:
        if self.how == "rows":
            return windows.unflatten(0, (images, -1))
        side = self.place.height // 2, self.place.width // 2
        apart = windows.unflatten(0, (images, 2, 2)).unflatten(3, side)
        order = (0, 3, 1, 4, 2, 5) if self.how == "grid" else (0, 1, 3, 2, 4, 5)
        return apart.permute(order).flatten(3, 4).flatten(1, 2)

    def _places(self, pixels: Places) -> Places:
        """Return places; none of them where tokens are no longer at theirs."""
        return pixels if self.board.placed else np.full_like(pixels, np.nan)

    def _note(self, q: Tensor, k: Tensor) -> None:
        """Take down what is attended to, computed by hand, and where."""
        board = self.board
        if not board.active:
            return
        scores = q @ k.mT * q.shape[-1] ** -0.5
        queries = keys = self._places(self.place.pixels_of_tokens())
        if self.how == "relative":
            scores = scores + self.bias
        if self.how == "sink":
            sink = self.none[0, :, :, :1].expand(*scores.shape[:3], 1)
            scores = torch.cat([scores, sink], -1)
        if self.how == "null":
            none = torch.einsum("nhqd,hkd->nhqk", q, self.none[0]) * q.shape[-1] ** -0.5
            scores = torch.cat([scores, none], -1)
        if self.how in ("masked", "sdpa masked"):
            scores = scores.masked_fill(~self.mask, float("-inf"))
        if self.how == "permuted":
            queries = keys = queries[self.order.numpy()]
        if self.how == "latents":
            keys = np.full((3, 2), np.nan)
        if self.how in ("sink", "null"):
            keys = np.concatenate([keys, np.full((1, 2), np.nan)])
        weights = scores.softmax(-1)[:, None]
        if self.how in OF_POSITIONS:
            queries = keys = self._places(self.place.pixels())
        if self.how == "pooled":
            pixels = self.place.to_map(torch.from_numpy(keys)[None])
            keys = F.avg_pool2d(pixels, 2).flatten(2)[0].T.numpy()
        elif self.how in OF_POSITIONS:
            count = self.place.height if self.how == "rows" else 4
            weights = weights[:, 0].unflatten(0, (-1, count))
            pixels = self.place.to_map(torch.from_numpy(queries)[None]).permute(0, 2, 3, 1)[0]
            if self.how == "shifted":
                pixels = pixels.roll((-1, -1), (0, 1))
            queries = keys = self._windows(pixels[None]).numpy()
        seen = self.how not in UNREAD
        softmax = seen and self.how not in ("exp", "log_softmax")
        board.note(Attended(self.path, weights, queries, keys, seen, softmax), board.attended)
