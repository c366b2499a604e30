"""Compare the weights of a file with those that a network has: by name and by shape."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from vitscope.errors import VitscopeError
from vitscope.networks.empty import Network, empty_network

SHOWN = 4


def check_names(
    weights: Mapping[str, Tensor], wanted: Mapping[str, Tensor], network: Network, what: str
) -> None:
    """Refuse weights of which one is missing, left over or of another shape than is `wanted`."""
    other = [
        f"{name} (has {_shape(weights[name])}, needs {_shape(tensor)})"
        for name, tensor in wanted.items()
        if name in weights and weights[name].shape != tensor.shape
    ]
    problems = {
        "missing": [name for name in wanted if name not in weights],
        "left over": [name for name in weights if name not in wanted],
        "of another shape": other,
    }
    found = "; ".join(f"{kind}: {_shortened(names)}" for kind, names in problems.items() if names)
    if not found:
        return
    missing = problems["missing"]
    if missing and not other and set(missing) <= _classifier(network, wanted):
        raise VitscopeError(
            f"{what} has no classifier that fits the model ({found}): measurements need one for "
            f"now, so give a checkpoint of a model that classifies."
        )
    raise VitscopeError(
        f"{what} does not fit the model ({found}): correct the family, the arch or the number of "
        f"classes, or `image_size` of the data set."
    )


def _classifier(network: Network, wanted: Mapping[str, Tensor]) -> set[str]:
    """Return the names of the weights whose shape depends on the number of classes."""
    more = empty_network({**network, "classes": network["classes"] + 1}).state_dict()
    return {name for name, tensor in wanted.items() if more[name].shape != tensor.shape}


def _shape(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "scalar"


def _shortened(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
