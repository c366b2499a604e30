"""Write a study of a network and a folder of images, ready to make a first figure."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from vitscope.errors import VitscopeError, nearest, not_there, quoted

# The value of `resize` that scales an image until it just covers its final size.
COVER = "cover"

_TEXT = """\
title: {network} on {images}

data:
  mine:
    source: {{kind: folder, path: {images}}}
    classes: {classes}
    # {source}
    image_size: {side}
    mean: {mean}
    std: {std}
{resize}    splits: {{test: {{images: {count}}}}}

models:
  network:
{model}
    data: mine

# Every kind of figure: docs/figures.md. Every key: config/README.md.
figures:
  fig9:
    kind: feature_variance
    models: [network]
"""
_TIMM = """\
    family: timm
    arch: {{name: {architecture}}}
    classes: {classes}
    checkpoint: {{timm: {network}}}"""
_PYTHON = """\
    family: python
    arch: {{file: {file}, make: {make}}}
    {checkpoint}"""
# What a study says where no file of weights is given: the label stands in every figure and verdict.
_UNTRAINED = """\
# Name the weights as {{path: FILE}}, or correct the label if {make} loads some.
    label: {make}, untrained
    checkpoint: {{made: true}}"""
_GUESSED = (
    "A guess: write the size, mean and standard deviation with which the network was trained."
)
_FROM_TIMM = "As timm says of {network}."
# By default, scale pixels to values from -2 to 2.
_MEAN, _STD = [0.5, 0.5, 0.5], [0.25, 0.25, 0.25]
# The maximum number of images of a first figure.
_MOST = 100


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", help="the study to write, as my-study.yaml")
    about = "a folder of images, with a sub-folder per class, or without any"
    parser.add_argument("--images", required=True, metavar="FOLDER", help=about)
    about = "a name of timm with its weights, as resnet26t.ra2_in1k, or FILE.py:FUNCTION"
    parser.add_argument("--network", required=True, metavar="NETWORK", help=about)
    about = (
        "the weights of FILE.py:FUNCTION; if left out, those that the function returns, untrained"
    )
    parser.add_argument("--weights", metavar="FILE", help=about)


def run(arguments: Namespace) -> None:
    """Write the study, check it, and print the next commands."""
    from vitscope.files.whole import write_text
    from vitscope.studies.loading import load_study

    path = Path(arguments.study)
    path = path if path.suffix else path.with_suffix(".yaml")
    if path.exists():
        raise VitscopeError(f"{path} is there already: name another study, or remove it.")
    images = Path(arguments.images).expanduser()
    if not images.is_dir():
        raise not_there("--images", "folder", images, path)
    classes, side, count = _look_at_images_for_init(images)
    network, _, make = arguments.network.partition(":")
    found: dict[str, Any] = {"images": arguments.images, "network": arguments.network}
    found |= {"classes": classes, "count": count}
    if make:
        found |= {"side": side, "mean": _MEAN, "std": _STD, "source": _GUESSED}
        found["resize"] = f"    resize: {COVER}\n"
        weights = f"checkpoint: {{path: {arguments.weights}}}"
        named = weights if arguments.weights else _UNTRAINED.format(make=make)
        found["model"] = _PYTHON.format(file=network, make=make, checkpoint=named)
    else:
        found |= _settings_of_timm_for_init(network)
    write_text(path, _TEXT.format(**found))
    try:
        load_study(path)
    except VitscopeError:
        path.unlink()
        raise
    if make and not arguments.weights:
        print(f"The weights are those that {make} returns, untrained: --weights FILE gives others.")
    print(
        f"{found['source']} It says image_size {found['side']}, mean {found['mean']} and std "
        f"{found['std']}.\n"
        f"{path} is written. Its first figure, what it costs, and whether the network is read "
        f"right:\n  vitscope make figures/{path.stem}/fig9.pdf --config studies_dir={path}\n"
        f"  vitscope plan {path}\n  vitscope check {path}"
    )


def _look_at_images_for_init(images: Path) -> tuple[str, int, int]:
    """Return the number of classes or null, the first image's shorter side, and the image count."""
    from vitscope.data.sources.folder import glance, images_in
    from vitscope.files.images import read_image_size

    found = glance(images, _MOST)
    inside = images / found.classes[0] if found.classes else images
    side = min(read_image_size(min(images_in(inside))))
    classes = len(found.classes)
    return (str(classes) if classes > 1 else "null"), side, found.images


def _settings_of_timm_for_init(network: str) -> dict[str, Any]:
    """Return the image size, mean, standard deviation and model entry of a network of timm."""
    from vitscope.networks.building.timm_import import import_timm

    timm = import_timm()
    architecture = network.split(".")[0]
    if not timm.is_model(architecture):
        raise VitscopeError(
            f"--network: found {quoted(network)}, allowed: a network of timm, or FILE.py:FUNCTION."
            f"{nearest(architecture, timm.list_models())}"
        )
    tags = timm.list_models(f"{architecture}.*", pretrained=True)
    if network not in (architecture, *tags) or not tags:
        raise VitscopeError(
            f"--network: found {quoted(network)}, which has no weights, allowed: "
            f"{', '.join(tags) or 'a network of timm that has some'}."
        )
    config = timm.get_pretrained_cfg(network)
    classes = config.num_classes or "null"
    model = _TIMM.format(architecture=architecture, network=network, classes=classes)
    side = config.input_size[-1]
    # As timm does: the shorter side is resized to more than what is cut out of the centre.
    shorter = int(side / config.crop_pct)
    how = "bilinear" if config.interpolation == "bilinear" else "bicubic"
    resize = f"    resize: {shorter}\n    interpolation: {how}\n"
    shape = {"side": side, "mean": list(config.mean), "std": list(config.std), "resize": resize}
    return shape | {"model": model, "source": _FROM_TIMM.format(network=network)}
