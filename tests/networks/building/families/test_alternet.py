"""AlterNet against a second writing of it: from the state dict, window by window, head by head."""

from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.helpers.networks import build_empty, described
from vitscope.networks.building.networks import find_family
from vitscope.networks.finding.blocks import list_blocks

SMALL = {
    "block": "bottleneck",
    "blocks": [1, 2, 4, 3],
    "attention": [0, 1, 2, 1],
    "heads": [1, 2, 3, 2],
    "head_dim": 5,
    "window": 2,
    "width": 4,
}


class Reference:
    """The forward pass as formulas over a state dict."""

    def __init__(self, state: dict[str, Tensor], heads: list[int], window: int) -> None:
        self.state, self.heads, self.window = state, heads, window

    def norm(self, x: Tensor, name: str) -> Tensor:
        mean, var, weight, bias = (
            self.state[f"{name}.{leaf}"].view(-1, 1, 1)
            for leaf in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / torch.sqrt(var + 1e-5) * weight + bias

    def conv(self, x: Tensor, name: str, stride: int = 1) -> Tensor:
        weight = self.state[f"{name}.weight"]
        bias = self.state.get(f"{name}.bias")
        return functional.conv2d(x, weight, bias, stride, weight.shape[-1] // 2)

    def attend(self, x: Tensor, name: str, heads: int) -> Tensor:
        q = self.conv(x, f"{name}.attn.to_q")
        k, v = self.conv(x, f"{name}.attn.to_kv").chunk(2, dim=1)
        out = torch.empty_like(q)
        size, dim = self.window, q.shape[1] // heads
        where = [(i, j) for i in range(size) for j in range(size)]
        table = self.state[f"{name}.pos_embedding"]
        bias = torch.tensor(
            [[table[y - i + size - 1, x - j + size - 1] for y, x in where] for i, j in where]
        )
        for image in range(len(x)):
            for top in range(0, x.shape[2], size):
                for left in range(0, x.shape[3], size):
                    for head in range(heads):
                        of_head = slice(head * dim, (head + 1) * dim)
                        cut = image, of_head, slice(top, top + size), slice(left, left + size)
                        query, key, value = (m[cut].flatten(1).T for m in (q, k, v))
                        weights = torch.softmax(query @ key.T / dim**0.5 + bias, dim=1)
                        out[cut] = (weights @ value).T.reshape(dim, size, size)
        return self.conv(out, f"{name}.attn.to_out.0")

    def block(self, x: Tensor, name: str, stride: int, heads: int) -> Tensor:
        if f"{name}.norm1.weight" in self.state:
            branch = functional.gelu(self.norm(x, f"{name}.norm1"))
            branch = self.norm(self.conv(branch, f"{name}.conv"), f"{name}.norm2")
            return x + self.attend(branch, f"{name}.attn", heads)
        start = functional.relu(self.norm(x, f"{name}.bn"))
        projects = f"{name}.shortcut.0.weight" in self.state
        skip = self.conv(start, f"{name}.shortcut.0", stride) if projects else x
        narrows = f"{name}.conv3.2.weight" in self.state
        branch = self.conv(start, f"{name}.conv1", 1 if narrows else stride)
        branch = functional.relu(self.norm(branch, f"{name}.conv2.0"))
        branch = self.conv(branch, f"{name}.conv2.2", stride if narrows else 1)
        if narrows:
            branch = functional.relu(self.norm(branch, f"{name}.conv3.0"))
            branch = self.conv(branch, f"{name}.conv3.2")
        return skip + branch

    def logits(self, x: Tensor, blocks: list[int], stem: bool = False) -> Tensor:
        x = self.conv(x, "layer0.layer0.0", 2 if stem else 1)
        if stem:
            x = functional.max_pool2d(x, 3, 2, 1)
        for stage, depth in enumerate(blocks):
            for index in range(depth):
                stride = 2 if stage > 0 and index == 0 else 1
                x = self.block(x, f"layer{stage + 1}.{index}", stride, self.heads[stage])
        x = functional.relu(self.norm(x, "classifier.0.bn")).mean((2, 3))
        dense = self.state["classifier.0.dense.weight"], self.state["classifier.0.dense.bias"]
        return functional.linear(x, *dense)


@pytest.mark.parametrize(
    ("block", "stem"), [("bottleneck", False), ("basic", False), ("bottleneck", True)]
)
def test_forward_pass(block: str, stem: bool) -> None:
    torch.manual_seed(0)
    arch, size = {**SMALL, "block": block, "stem": stem}, 64 if stem else 32
    model = find_family("alternet").build(arch, num_classes=7, image_size=size).eval()
    # So that normalizations have something to do.
    for name, buffer in model.named_buffers():
        if name.endswith(("running_mean", "running_var")):
            buffer.uniform_(0.5, 1.5)
    images = torch.randn(2, 3, size, size)
    reference = Reference(model.state_dict(), arch["heads"], arch["window"])
    with torch.inference_mode():
        expected = reference.logits(images, arch["blocks"], stem)
        torch.testing.assert_close(model(images), expected, rtol=1e-4, atol=1e-5)


def test_published_layout(golden: Any) -> None:
    model = golden.model("alternet_50")
    images, _ = golden.images(1)
    reference = Reference(golden.state_dict("alternet_50"), [3, 6, 12, 24], window=4)
    with torch.inference_mode():
        expected = reference.logits(images, [3, 4, 6, 4])
        torch.testing.assert_close(model(images), expected, rtol=1e-4, atol=1e-4)


def cut_points(arch: dict[str, Any], size: int) -> pd.DataFrame:
    model = build_empty("alternet", arch, 1000, size)
    return list_blocks("alternet", model, described(size)).table


def test_one_msa_at_the_end_of_each_of_the_last_three_stages() -> None:
    found = cut_points({"depth": 50, "attention": [0, 1, 1, 1]}, 32)
    assert [*zip(found["stage"], found["kind"], strict=True)] == [
        (0, "stem"),
        *[(1, "conv")] * 3,
        *[(2, "conv")] * 3,
        (2, "msa"),
        *[(3, "conv")] * 5,
        (3, "msa"),
        *[(4, "conv")] * 3,
        (4, "msa"),
    ]


@pytest.mark.parametrize(("size", "window", "side"), [(224, 7, 56), (64, 2, 16)])
def test_a_stem_takes_large_images(size: int, window: int, side: int) -> None:
    """Of 224 pixels, windows of 7, as the authors' code has them, divide all maps."""
    arch = {"depth": 50, "stem": True} | ({} if window == 7 else {"window": window})
    found = cut_points(arch, size)
    ends = found.groupby("stage").last()[["channels", "height", "width"]]
    assert ends.values.tolist() == [
        [64, side, side],
        *([256 * 2**n, side // 2**n, side // 2**n] for n in range(4)),
    ]
    assert (found["kind"] == "msa").sum() == 6


@pytest.mark.parametrize("mixing", ["fixed", "uniform"])
def test_mixing_by_position_is_attention_without_queries_and_keys(mixing: str) -> None:
    torch.manual_seed(0)
    network = find_family("alternet").build({**SMALL, "mixing": mixing}, 10, 16).eval()
    attending = find_family("alternet").build(SMALL, 10, 16).eval()
    state = attending.state_dict()
    for name, value in network.state_dict().items():
        if name.endswith("to_v.weight"):
            of_keys = name.replace("to_v", "to_kv")
            state[of_keys] = torch.cat([torch.zeros_like(value), value])
            state[name.replace("to_v", "to_q")] = torch.zeros_like(value)
        else:
            assert value.shape == state[name].shape
            state[name] = value
    attending.load_state_dict(state)
    images = torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        torch.testing.assert_close(network(images), attending(images), rtol=1e-5, atol=1e-6)
    learned = [name for name, _ in network.named_parameters() if "pos_embedding" in name]
    assert len(learned) == (sum(SMALL["attention"]) if mixing == "fixed" else 0)
