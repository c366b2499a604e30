"""Load a converted checkpoint: a safetensors file of a network's own names."""

from pathlib import Path

import safetensors.torch
import torch
from torch import nn

from vitscope.files.tensors import TensorFile
from vitscope.networks.building.empty import Network, empty_network, fill
from vitscope.networks.checkpoints.matching import check_names


def read_origin(path: Path) -> dict[str, str]:
    """Return the metadata of a converted checkpoint: `source`, `source_sha256` and others."""
    return TensorFile(path).metadata


def load_model(path: Path, network: Network) -> nn.Module:
    """Build a network and give it the weights of a converted checkpoint, ready for inference.

    All jobs compute blocks of `nn.TransformerEncoder` alike: as they are where they are read.
    """
    torch.backends.mha.set_fastpath_enabled(False)
    TensorFile(path).verify()
    weights = safetensors.torch.load_file(path)
    model = empty_network(network)
    check_names(weights, model.state_dict(), network, f"{network['family']}: {path}")
    return fill(model, weights)
