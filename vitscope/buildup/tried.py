"""What a step of a build-up tries: a network, or none where all is done; and its file."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from vitscope.errors import VitscopeError
from vitscope.files.whole import write_text

FAMILY = "alternet"
# The families that a baseline may be of.
BASELINES = ("resnet", FAMILY)

# What a study says of a network: `family`, `arch`, `classes` and others.
Network = dict[str, Any]


class Tried(NamedTuple):
    """What a step tries: the number of the step, and the network; none where all is done."""

    step: int
    network: Network | None


def write_tried(tried: Tried, path: Path | str) -> None:
    """Write what a step tries, for all that make and measure it."""
    write_text(path, json.dumps(tried._asdict(), sort_keys=True) + "\n")


def read_tried(path: Path | str) -> Tried:
    """Read what a step tries."""
    try:
        return Tried(**json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError) as error:
        raise VitscopeError(
            f"{path} does not say what is tried: delete it and run again."
        ) from error


def network_to_try(path: Path | str, where: str) -> Network:
    """Return the network that a step tries; refuse a step that there is none of."""
    tried = read_tried(path)
    if tried.network is None:
        raise VitscopeError(
            f"{where}: there is no step {tried.step}: the build-up ended before it, so ask for an "
            f"earlier one; {path} says where."
        )
    return tried.network
