"""How a stream and its branches are added: code, and what the sum has of each by hand.

Names are the stream `x`, the branches `a`, `b` and `c`, a weight `w` of each channel, a matrix `W`
of channels, a gate `g` that depends on the images, and a mask `m` of tokens.
"""

from functools import cache
from types import CodeType
from typing import Any

import einops
import torch
from torch import Tensor

PLAIN = (
    "x = x + a",
    "x = a + x",
    "x += a",
    "x = x.add_(a)",
    "x = a.add_(x)",
    "a += x; x = a",
    "x = torch.add(x, a)",
    "x = sum([x, a])",
    "x = x.clone() + a",
    "x = torch.stack([x, a]).sum(0)",
    "x[:] += a",
    "x = torch._foreach_add([x], [a])[0]",
    "x = torch.einsum('knlc->nlc', torch.stack([x, a]))",
    "x = (x.double() + a.double()).float()",
    "x = torch.nan_to_num(x) + a",
    "x = x + torch.zeros_like(x) + a",
    "x = torch.cat([x[None], a[None]]).sum(0)",
    "x = torch.nn.quantized.FloatFunctional().add(x, a)",
    "x = einops.reduce([x, a], 'k ... -> ...', 'sum')",
    "x = einops.reduce(torch.stack([a, x]), 'k ... -> ...', 'sum')",
    "x = torch.cat([x, a], -1).unflatten(-1, (2, -1)).sum(-2)",
    "x = x.scatter_add(1, torch.arange(x.shape[1])[:, None].expand(x.shape), a)",
    "x = (x + a) + b",
    "x = (a + b) + x",
    "x = x + (a + b)",
    "x = b + (x + a)",
    "x = (x + b) + a",
    "x = a + (b + x)",
    "x += a; x += b",
    "x = x.add_(a).add_(b)",
    "x = a.add_(b).add_(x)",
    "x = sum([x, a, b])",
    "x = sum([a, x, b])",
    "x = torch.stack([x, a, b]).sum(0)",
    "x = torch.stack([a, b]).sum(0) + x",
    "x = ((x + a) + b) + c",
    "x = (x + a) + (b + c)",
    "x = c + (b + (a + x))",
    "x = (a + b) + (c + x)",
    "x = (a + (x + c)) + b",
    "x = x + ((a + b) + c)",
    "x = sum([x, a, b, c])",
    "x += a; x = b + x; x += c",
)
# With what the sum has of the stream, and of the branches.
WEIGHTED = {
    "x = torch.add(x, a, alpha=0.5)": ("x", "0.5 * a"),
    "x = torch.add(a, x, alpha=0.9)": ("0.9 * x", "a"),
    "x = x - a": ("x", "-a"),
    "x = 0.9 * x + a": ("0.9 * x", "a"),
    "x = a + 0.9 * x": ("0.9 * x", "a"),
    "x = torch.lerp(x, a, 0.4)": ("0.6 * x", "0.4 * a"),
    "x = torch.stack([x, a]).mean(0)": ("0.5 * x", "0.5 * a"),
    "x = torch.addcmul(x, a, w)": ("x", "a * w"),
    "x = torch.addcmul(x, a, x.new_ones(()))": ("x", "a"),
    "x = torch.where(m, x + a, x)": ("x", "a"),
    "x = x.index_add(1, torch.arange(x.shape[1], device=x.device), a)": ("x", "a"),
    "x[:, 1:] += a[:, 1:]": ("x", "torch.cat([0.0 * a[:, :1], a[:, 1:]], 1)"),
    "x = torch.cat([x[:, :1], x[:, 1:] + a[:, 1:]], 1)": (
        "x",
        "torch.cat([0.0 * a[:, :1], a[:, 1:]], 1)",
    ),
    "x = torch.lerp(a, x, 0.6)": ("0.6 * x", "0.4 * a"),
    "x = torch.addcdiv(x, a, w)": ("x", "a / w"),
    "x = torch.sub(x, a, alpha=0.5)": ("x", "-0.5 * a"),
    "x = (1 - g) * x + g * a": ("(1 - g) * x", "g * a"),
    "x = g * a + x": ("x", "g * a"),
    "x = torch.baddbmm(x, a, W.expand(len(x), -1, -1))": ("x", "a @ W"),
    "x = torch.addmm(x.flatten(0, 1), a.flatten(0, 1), W).unflatten(0, x.shape[:2])": (
        "x",
        "a @ W",
    ),
    "x = x + 0.5 * a + 0.5 * b": ("x", "0.5 * a + 0.5 * b"),
    "x = (1 - g) * x + g * a + b": ("(1 - g) * x", "g * a + b"),
    "x = x + 0.5 * (a + b)": ("x", "0.5 * (a + b)"),
    "x = (x + a) - b": ("x", "a - b"),
    "x = (x - a) - b": ("x", "-a - b"),
    "x = torch.add(x + a, b, alpha=0.5)": ("x", "a + 0.5 * b"),
    "x = 0.9 * x + a + b": ("0.9 * x", "a + b"),
    "x = x + (a - x)": ("x", "a - x"),
    "x = 0.5 * (a - x) + x": ("x", "0.5 * (a - x)"),
    "x = x - 0.5 * (x - a)": ("x", "0.5 * (a - x)"),
    "x = torch.add(x, a - x, alpha=0.5)": ("x", "0.5 * (a - x)"),
    "x += 0.5 * (a - x)": ("x", "0.5 * (a - x)"),
    "x = x - (x - a)": ("x", "a - x"),
    "x = torch.sub(a, x) + x": ("x", "a - x"),
    "x = x + (a - x).detach()": ("x", "a - x"),
    "x = x + w * (a - x)": ("x", "w * (a - x)"),
    "x = torch.addcmul(x, a - x, w)": ("x", "(a - x) * w"),
    "x = x + (a - x) + b": ("x", "a - x + b"),
    "x = einops.reduce([x, a], 'k ... -> ...', 'mean')": ("0.5 * x", "0.5 * a"),
}
SPELLINGS = (*PLAIN, *WEIGHTED)


@cache
def _code(text: str) -> CodeType:
    return compile(text, text, "exec")


def count_terms(text: str) -> int:
    return sum(name in _code(text).co_names for name in "abc")


def needs_tokens(text: str) -> bool:
    """Tell whether a spelling takes tensors (images, tokens, channels) alone."""
    return any(
        word in text for word in ("where", "_add(1", "1:]", "knlc", " w)", "w *", "W", "g *")
    )


def needs_front(text: str) -> bool:
    """Tell whether a spelling leaves the first token as it was."""
    return "1:]" in text


def add(text: str, x: Tensor, terms: list[Tensor], **others: Tensor) -> Tensor:
    names: dict[str, Any] = {
        "torch": torch,
        "einops": einops,
        "x": x,
        **dict(zip("abc", terms, strict=False)),
    }
    exec(_code(text), names | others, names)
    result: Tensor = names["x"]
    return result


def parts(text: str, x: Tensor, terms: list[Tensor], **others: Tensor) -> tuple[Tensor, Tensor]:
    """Return what a sum has of the stream and of the branches, which stay as they are."""
    stream, branch = WEIGHTED.get(text, ("x", " + ".join("abc"[: len(terms)])))
    kept = [each.clone() for each in terms]
    return (
        add(f"x = {stream}", x.clone(), kept, **others),
        add(f"x = {branch}", x.clone(), kept, **others),
    )
