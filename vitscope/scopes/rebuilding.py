"""Build the network of a saved study in a process of its own, as jobs do, and run it.

`python -m vitscope.scopes.rebuilding STUDY IMAGES RETURNED` reads normalized images and writes what
the network makes of them.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from vitscope.errors import VitscopeError
from vitscope.networks.building.networks import tensors_of, widened
from vitscope.networks.checkpoints.conversion import convert, load_model
from vitscope.studies.loading import load_study


def returned_again(file: Path, images: torch.Tensor) -> list[torch.Tensor]:
    """Return what the one network of a study does, built from its description and weights."""
    study = load_study(file)
    ((name, model),) = study.models.items()
    network = study.network(name)
    with TemporaryDirectory(prefix="vitscope-") as place:
        target = Path(place) / "weights.safetensors"
        convert(Path(model.checkpoint["path"]), network, target, label=name, origin="saved")
        again = load_model(target, network)
    with torch.inference_mode():
        return [widened(each) for each in tensors_of(again(images))]


def main() -> None:
    """Do so; what is wrong ends in one sentence."""
    study, images, returned = map(Path, sys.argv[1:])
    try:
        made = returned_again(study, torch.from_numpy(np.load(images)))
    except VitscopeError as error:
        sys.exit(str(error))
    np.savez(returned, *(each.numpy() for each in made))


if __name__ == "__main__":
    main()
