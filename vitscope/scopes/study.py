"""The study of a network in memory, with the settings that a study's file would have."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from vitscope.data.class_numbers import numbered_names
from vitscope.errors import VitscopeError
from vitscope.image_size import ImageSize, in_short
from vitscope.measures import registry
from vitscope.networks.building.networks import Output
from vitscope.networks.finding.cut_points import Side
from vitscope.scopes.images import DATASET, SPLIT, Stored
from vitscope.settings.faults import check_section
from vitscope.settings.keys import (
    AugmentedSettings,
    Dataset,
    LossSettings,
    Model,
    Settings,
    VideoSettings,
)
from vitscope.settings.section import Schema, fill_section, schema_of_section
from vitscope.settings.study import Study
from vitscope.studies.checks import check_view_of_video
from vitscope.studies.loading import analysis_schema, study_schema
from vitscope.studies.resolving import resolve_study

# Error sentences have this in place of the name of a study's file.
WHERE = "look"
IMAGES, WEIGHTS = "images.npz", "weights.safetensors"


def describe_scope_as_study(
    name: str,
    stored: Stored,
    points: Sequence[Mapping[str, Any]] | None,
    norms: Side,
    output: Output,
    loss: Mapping[str, Any] | None,
    analysis: Mapping[str, Any] | None,
) -> Study:
    """Return a study of a network and images in memory, with every figure of a single network."""
    own = _check_part_of_study(analysis or {}, analysis_schema(), "analysis")
    of_model = schema_of_section(Model)["properties"]
    model: Settings = {
        "label": name,
        "family": "python",
        "data": DATASET,
        "checkpoint": {"path": WEIGHTS},
        "arch": {},
        "norms": _check_part_of_study(norms, of_model["norms"], "norms"),
    }
    if points is not None:
        listed = [dict(point) for point in points]
        model["points"] = _check_part_of_study(listed, of_model["points"], "points")
    if output is not None:
        model["output"] = output
    split = stored.split
    numbered = numbered_names(len(split.classes))
    settings: Settings = {
        "title": f"{name}, looked at in memory",
        "data": {
            DATASET: {
                "source": {"kind": "npz", "path": IMAGES},
                "classes": stored.classes,
                "class_names": None if split.classes == numbered else split.classes,
                "image_size": in_short(*split.shape[1:]),
                "mean": stored.mean,
                "std": stored.std,
                "splits": {SPLIT: {"images": len(split), "seed": None}},
            }
        },
        "models": {name: model},
        "figures": {
            kind: {"kind": kind, "models": [name]}
            for kind, drawn in registry.kinds().items()
            if registry.declared(drawn.measure).models == 1 and not drawn.by_epoch
        },
        "analysis": _fit_study_to_images(own, len(split)),
    }
    if loss is not None:
        settings["loss"] = _check_part_of_study(dict(loss), schema_of_section(LossSettings), "loss")
    fill_section(settings, study_schema())
    return resolve_study(name, Path(WHERE), settings)


def describe_scope_video(**settings: Any) -> Settings:
    """Check the settings of a video by the rules of studies, and return the settings."""
    schema = schema_of_section(VideoSettings)
    own = {key: schema["properties"][key] for key in settings}
    check_section("video", settings, {**schema, "properties": own, "required": []})
    check_view_of_video("video", settings)
    return settings


def check_image_size(size: ImageSize | None) -> ImageSize | None:
    """Check a size of images by the rules of studies, and return it; a tuple becomes a list."""
    given = [*size] if isinstance(size, tuple) else size
    rules = schema_of_section(Dataset)["properties"]["image_size"]
    return None if given is None else _check_part_of_study(given, rules, "image_size")


def _check_part_of_study(settings: Any, schema: Schema, key: str) -> Any:
    copied = deepcopy(settings)
    check_section(WHERE, copied, schema, within=(key,))
    return copied


def _fit_study_to_images(analysis: Settings, images: int) -> Settings:
    """Fill in settings of measures so that they take all images, unless the caller sets fewer."""
    analysis.setdefault("images", images)
    if analysis["images"] > images:
        raise VitscopeError(
            f"{WHERE}: analysis.images: found {analysis['images']}, allowed: at most {images}, all "
            f"that there are."
        )
    analysis["split"] = SPLIT
    of_loss = analysis.setdefault("augmented", {})
    of_loss["split"] = SPLIT
    most = schema_of_section(AugmentedSettings)["properties"]["images"]
    drawn = of_loss.setdefault("images", min(images, most["default"]))
    for measure in map(registry.declared, registry.names()):
        if measure.fit:
            fitting = measure.fit(drawn if measure.need.of_training else images)
            analysis[measure.name] = fitting | analysis.get(measure.name, {})
    return analysis
