"""Build the network of a saved study in a process of its own, as jobs do, and run it.

`python -m vitscope.scopes.rebuilding STUDY IMAGES LOGITS` reads normalized images and writes what
the network makes of them.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from vitscope.errors import VitscopeError
from vitscope.networks.building.outputs import logits_of
from vitscope.networks.checkpoints.conversion import convert
from vitscope.networks.checkpoints.loading import load_model
from vitscope.studies.loading import load_study


def logits_again(file: Path, images: torch.Tensor) -> torch.Tensor:
    """Return the logits of the one network of a study, built from its description and weights."""
    study = load_study(file)
    ((name, model),) = study.models.items()
    network = study.network(name)
    with TemporaryDirectory(prefix="vitscope-") as place:
        target = Path(place) / "weights.safetensors"
        convert(Path(model.checkpoint["path"]), network, target, label=name, origin="saved")
        again = load_model(target, network)
    with torch.inference_mode():
        return logits_of(again(images))


def main() -> None:
    """Do so; what is wrong ends in one sentence."""
    study, images, logits = map(Path, sys.argv[1:])
    try:
        made = logits_again(study, torch.from_numpy(np.load(images)))
    except VitscopeError as error:
        sys.exit(str(error))
    np.save(logits, made.numpy())


if __name__ == "__main__":
    main()
