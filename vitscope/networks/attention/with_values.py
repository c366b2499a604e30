"""A recorded pass of a network with its weights: what it adds to images and multiplies them by."""

from collections.abc import Mapping
from itertools import chain
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from vitscope.errors import VitscopeError
from vitscope.networks.finding.dataflow import Constant, Dataflow, record
from vitscope.networks.finding.shapes import blank_images, own_tensors, running_on, without_values


def record_with_values(model: nn.Module, network: Mapping[str, Any]) -> Dataflow:
    """Record what a model with weights, which a study describes as `network`, does with images.

    The pass is one on shapes, and what is computed of weights alone has values. Attention is
    recorded step by step, as are the biases that it adds.
    """
    model = model.eval()
    try:
        return _on_shapes(model, network)
    except VitscopeError:
        raise
    except Exception:
        # Tensors that are no parameters stay where they are, and values may decide what is done.
        first = next(chain(model.parameters(), model.buffers()), torch.zeros(0))
        with sdpa_kernel(SDPBackend.MATH):
            return record(model, blank_images(model, network, first.device))


def _on_shapes(model: nn.Module, network: Mapping[str, Any]) -> Dataflow:
    empty = without_values(model)
    pairs = [(empty[name], tensor.detach()) for name, tensor in own_tensors(model).items()]
    images = blank_images(model, network, "meta")
    return record(model, images, running_on(model, empty), pairs)


def name_of(model: nn.Module, constant: Constant) -> str | None:
    """Return the name of the parameter or buffer that a constant is, or is a view of, if any."""
    memory = constant.tensor.untyped_storage().data_ptr()
    named = chain(model.named_parameters(), model.named_buffers())
    return next((name for name, each in named if each.untyped_storage().data_ptr() == memory), None)
