"""The selective scan in plain torch, with the interface of `mamba_ssm`."""

import torch
import torch.nn.functional as F
from torch import Tensor


def selective_scan_ref(
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None = None,
    z: Tensor | None = None,
    delta_bias: Tensor | None = None,
    delta_softplus: bool = False,
) -> Tensor:
    """Scan u (images, channels, length), step by step.

    B and C are (channels, state), (images, state, length) or (images, groups, state, length).
    """
    if delta_bias is not None:
        delta = delta + delta_bias[:, None]
    if delta_softplus:
        delta = F.softplus(delta)
    channels, length = u.shape[1:]

    def by_channel(given: Tensor) -> Tensor:
        if given.ndim == 2:
            return given[None, :, :, None].expand(-1, -1, -1, length)
        groups = given[:, None] if given.ndim == 3 else given
        return groups.repeat_interleave(channels // groups.shape[1], 1)

    B, C = by_channel(B), by_channel(C)
    state, outputs = torch.zeros_like(A[None]), []
    for step in range(length):
        now = delta[:, :, step, None]
        state = torch.exp(now * A) * state + now * B[..., step] * u[:, :, step, None]
        outputs.append((state * C[..., step]).sum(-1))
    y = torch.stack(outputs, -1)
    if D is not None:
        y = y + u * D[:, None]
    return y if z is None else y * F.silu(z)
