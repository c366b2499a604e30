"""Compare the weights of a file with those that a network has: by name and by shape."""

from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor

from vitscope.errors import VitscopeError, first_of
from vitscope.networks.building.empty import Network, empty_network

SHOWN = 4
SOME_CLASSES = 2


class Misfits(NamedTuple):
    """The names of weights that are missing, left over or of another shape than is wanted."""

    missing: list[str]
    left_over: list[str]
    misshapen: list[str]

    @property
    def counts(self) -> tuple[int, int]:
        """How many weights a network would not get, and how many it has no use for."""
        return len(self.missing) + len(self.misshapen), len(self.left_over)


def misfits(weights: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> Misfits:
    """Return what keeps weights from being those that are `wanted`."""
    return Misfits(
        [name for name in wanted if name not in weights],
        [name for name in weights if name not in wanted],
        [name for name in wanted if name in weights and weights[name].shape != wanted[name].shape],
    )


def check_names(
    weights: Mapping[str, Tensor],
    wanted: Mapping[str, Tensor],
    network: Network,
    what: str,
    *,
    named: Mapping[int, str] | None = None,
    about: str = "",
) -> None:
    """Refuse weights of which one is missing, left over or of another shape than is `wanted`.

    `named` are the names in the file, by the identity of tensors; `about` is said of them besides.
    """
    missing, left_over, misshapen = misfits(weights, wanted)
    extra = [(named or {}).get(id(weights[name]), name) for name in left_over]
    other = [
        f"{name} (has {_shape(weights[name])}, needs {_shape(wanted[name])})" for name in misshapen
    ]
    problems = {"missing": missing, "left over": extra, "of another shape": other}
    found = "; ".join(
        f"{kind}: {first_of(names, SHOWN)}" for kind, names in problems.items() if names
    )
    if not found:
        return
    if missing and not other and set(missing) <= classifier_names(network):
        raise VitscopeError(
            f"{what} has no classifier that fits the model ({found}): give `classes: null` to the "
            f"model if only its feature maps are looked at, or a checkpoint of one that classifies."
        )
    if not (missing or other):
        raise VitscopeError(
            f"{what} does not fit the model ({found}{about}): give their names, or patterns of "
            f"them, to `checkpoint.ignore`, or correct the family or the arch."
        )
    raise VitscopeError(
        f"{what} does not fit the model ({found}{about}): correct the family, the arch or the "
        f"number of classes, or `image_size` of the data set."
    )


def classifier_names(network: Network) -> set[str]:
    """Return the names of the weights that a network has only where it tells classes apart."""
    some = empty_network({**network, "classes": network["classes"] or SOME_CLASSES})
    return some.state_dict().keys() - empty_network({**network, "classes": None}).state_dict()


def _shape(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "scalar"
