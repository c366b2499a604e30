"""The bundled networks, with the images that they are measured on."""

from typing import Any

import numpy as np
import safetensors.torch

from vitscope.data.opening import open_source
from vitscope.data.split import select
from vitscope.errors import VitscopeError, nearest
from vitscope.files.arrays import Array
from vitscope.files.strict_yaml import load_yaml
from vitscope.networks.building.networks import fill, uninitialized_network
from vitscope.package_data import ROOT
from vitscope.settings.section import fill_section as with_defaults
from vitscope.settings.study import Study
from vitscope.studies.loading import BUNDLED_STUDIES, study_schema
from vitscope.studies.resolving import resolve_study


def bundled(name: str, images: int | None = None) -> dict[str, Any]:
    """Return a small trained network, and images, as `look` takes them.

    The networks come from the study `mini`: `resnet`, `vit`, `pit`, `swin`, `alternet`, `mixer`
    and `convnext`; `resnet_6` and `vit_6`, trained on 6 % of the images, `resnet_25` and `vit_25`;
    and smaller ViTs: `vit_3x3`, `vit_5x5` and `vit_8x8` with local attention, `vit_global`,
    `vit_gap` without a class token; with other seeds `resnet_1`, `resnet_2`, `vit_1`, `vit_2`,
    `vit_3x3_1`, `vit_3x3_2`, `vit_5x5_1`, `vit_5x5_2`, `vit_global_1` and `vit_global_2`; `cnn` and
    `cnn_with_msas`, from the build-up of AlterNet; `vit_scenes` and `resnet_scenes`, trained on
    images without a subject. The images are the 256 generated images that this study measures, so
    that `look(**bundled("vit"))` returns the values of the workflow; `images` asks for another
    number of images, up to 2000.
    """
    # Read the study of the bundled networks without looking for the files that it names.
    file = BUNDLED_STUDIES / "mini.yaml"
    settings = load_yaml(file)
    with_defaults(settings, study_schema())
    study = resolve_study(file.stem, file, settings)
    there = [each for each, model in study.models.items() if not model.interventions]
    if name not in there:
        raise VitscopeError(
            f"There is no bundled network '{name}'.{nearest(name, there)} There are "
            f"{', '.join(there)}."
        )
    network = study.network(name)
    weights = safetensors.torch.load_file(ROOT / study.models[name].checkpoint["bundled"])
    pixels, labels, classes = _select_bundled_images(study, name, images)
    model = fill(uninitialized_network(network), weights)
    # `look` reads this name. As a key of the result, it would keep callers from giving a name.
    vars(model)["bundled_as"] = name
    vars(model)["bundled_from"] = {key: network[key] for key in ("family", "arch")}
    given = {"model": model, "images": pixels, "labels": labels}
    return given | {key: network[key] for key in ("mean", "std")} | {"class_names": classes}


def _select_bundled_images(
    study: Study, name: str, wanted: int | None
) -> tuple[Array, Array, list[str]]:
    data, split = study.dataset_of(name), study.analysis.split
    there = data.splits[split].images
    count = study.analysis.images if wanted is None else wanted
    if there is None or not 1 <= count <= there:
        raise VitscopeError(f"`images` is {count}, allowed: from 1 to {there}.")
    rows = select(there, count, study.analysis.seed)
    opened = open_source(data.source, split)
    samples = [*opened.samples(rows)]
    pixels = np.stack([np.asarray(sample.image) for sample in samples]).transpose(0, 3, 1, 2)
    return pixels, np.array([sample.label for sample in samples]), opened.classes
