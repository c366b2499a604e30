"""Save a network and images in memory as a study, from which the workflow makes the same tables.

`python -m vitscope.scopes.saving STUDY IMAGES RETURNED` builds the network of a saved study in a
process of its own, as jobs do, and writes the outputs of the network for normalized images.
"""

import ast
import filecmp
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import numpy as np
import safetensors.torch
import torch
import yaml
from torch import nn

from vitscope.data.split import Split
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.files.whole import write_text
from vitscope.networks.building.networks import tensors_of, widened
from vitscope.networks.building.own_code import INSTALLED, OwnCode
from vitscope.networks.checkpoints.conversion import convert, load_converted_model
from vitscope.scopes.lending import device_of, lend
from vitscope.scopes.study import IMAGES, WEIGHTS
from vitscope.settings.faults import check_section
from vitscope.settings.keys import NAME, Settings
from vitscope.settings.study import Study
from vitscope.studies.loading import load_study

# The definitions of a notebook are saved under this name, those of a script after the script's.
NETWORK = "network.py"
# Keywords of timm that the study's data set decides.
OF_THE_DATA = ("num_classes", "img_size", "in_chans", "pretrained")
# The rebuilt network is compared with the original on this many images.
PROOFS = 2
WHAT_IS_SAVED_OF_MAIN = (
    " Of a script or notebook, imports, definitions and plain constants are saved: move what else "
    "the network needs to a module of its own, and import it from there."
)

Make = Callable[..., nn.Module]


def save_as_study(
    study: Study,
    kinds: list[str],
    network: nn.Module,
    images: Split,
    folder: Path,
    make: Make | None,
    keywords: Mapping[str, Any],
) -> Path:
    """Write a study with its images and weights to a folder; return the file of the study.

    The study is first written beside `folder`, and moved there only after the network
    was rebuilt from it, by `make` and its `keywords`, and returned the same outputs.
    """
    if not images.has_pixels:
        raise VitscopeError(
            "The images are no pixels of 8 bits, which a study is made of: look at images from 0 "
            "to 255, or from 0 to 1 as they have them, and give mean= and std=."
        )
    # The study has the name of its folder.
    name = folder.resolve().name
    check_section("scope.save", name, NAME, within=("name of the folder",))
    there = next(each for each in (folder, *folder.absolute().parents) if each.is_dir())
    with TemporaryDirectory(prefix=".saving-", dir=there) as place:
        beside = Path(place)
        family, arch = _how_to_build_saved_network(network, beside, make, keywords)
        _save_images_as_npz(images, beside / IMAGES)
        weights = {name: each.detach().cpu() for name, each in network.state_dict().items()}
        copies = {name: each.clone().contiguous() for name, each in weights.items()}
        safetensors.torch.save_file(copies, beside / WEIGHTS)
        heading = (
            f"# Looked at in memory. Copy this folder into that of the workflow, and there make "
            f"all:\n#   snakemake --config studies_dir={folder} study={name} --cores 2\n"
        )
        file = beside / f"{name}.yaml"
        for lies_in in (beside, folder):
            settings = _settings_of_saved_study(study, kinds, lies_in, family, arch)
            write_text(file, heading + yaml.safe_dump(settings, sort_keys=False))
            if lies_in == beside:
                of_main = _is_of_main(make or type(network))
                _prove_saved_outputs_are_same(file, study, network, images, arch, of_main)
        _move_saved_files(beside, folder)
    return folder / file.name


def _move_saved_files(source: Path, target: Path) -> None:
    """Move all files below a folder, except files that the target already has, such as own code."""
    for file in [each for each in source.rglob("*") if each.is_file()]:
        place = target / file.relative_to(source)
        if not (place.is_file() and filecmp.cmp(file, place, shallow=False)):
            place.parent.mkdir(parents=True, exist_ok=True)
            file.replace(place)


def _settings_of_saved_study(
    study: Study, kinds: list[str], folder: Path, family: str, arch: Settings
) -> Settings:
    settings = yaml.safe_load(yaml.safe_dump(study.settings, sort_keys=False))
    (name,) = settings["models"]
    model = settings["models"][name]
    model |= {"family": family, "arch": arch, "checkpoint": {"path": str(folder / WEIGHTS)}}
    for data in settings["data"].values():
        data["source"] = {"kind": "npz", "path": str(folder / IMAGES)}
    settings["figures"] = {kind: settings["figures"][kind] for kind in kinds}
    return dict(settings)


def _save_images_as_npz(images: Split, path: Path) -> None:
    pixels = images.images(slice(None)).transpose(0, 2, 3, 1)
    arrays: dict[str, Any] = {"images": np.ascontiguousarray(pixels)}
    if (images.labels >= 0).all():
        arrays["labels"] = images.labels
    np.savez(path, **arrays)


def _how_to_build_saved_network(
    network: nn.Module, folder: Path, make: Make | None, keywords: Mapping[str, Any]
) -> tuple[str, Settings]:
    """Return the family and the `arch` that build the network again; copy its code to `folder`."""
    if make is None and (bundled := getattr(network, "bundled_from", None)):
        return str(bundled["family"]), dict(bundled["arch"])
    described = getattr(network, "pretrained_cfg", None) or {}
    if make is None and described.get("architecture"):
        kept = {key: value for key, value in keywords.items() if key not in OF_THE_DATA}
        return "timm", {"name": described["architecture"], **kept}
    maker = make or type(network)
    named = {"make": maker.__name__, **keywords}
    module = sys.modules[maker.__module__]
    file = getattr(module, "__file__", None)
    if file is None:
        write_text(folder / NETWORK, _notebook_module_to_save(module, maker.__name__))
        return "python", {"file": NETWORK, **named}
    own = _locate_loaded_module(module, Path(file).resolve())
    if own.is_installed or own.root.name in INSTALLED:
        return "python", {"module": own.module, **named}
    _copy_own_code(own, folder)
    if _is_of_main(maker):
        return "python", {"file": _save_definitions_of_script(own, folder), **named}
    return "python", {"file": str(own.file.relative_to(own.root)), **named}


def _is_of_main(maker: Make) -> bool:
    """Return whether a function or class is defined in the script or notebook that runs."""
    return maker.__module__ == "__main__"


def _copy_own_code(own: OwnCode, folder: Path) -> None:
    for path in own.files().values():
        target = folder / path.relative_to(own.root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def _locate_loaded_module(module: ModuleType, file: Path) -> OwnCode:
    if module.__name__ != "__main__":
        return OwnCode(file, module.__name__)
    # Run by `python -m`, it is a module of a package.
    return OwnCode(file, module.__spec__.name if module.__spec__ else file.stem)


def _save_definitions_of_script(own: OwnCode, folder: Path) -> str:
    """Write what a script defines in place of the copy of it, without what it runs.

    A script, which may train networks, would run again in each job that imports it.
    """
    copied = folder / own.file.relative_to(own.root)
    # Its own name would replace the script, where the study is saved beside it.
    written = copied.with_name(f"{copied.stem}_{NETWORK}")
    write_text(written, _module_of_definitions([copied.read_text(encoding="utf-8")]))
    copied.unlink()
    return str(written.relative_to(folder))


def _notebook_module_to_save(module: Any, name: str) -> str:
    """Return a module with the imports, definitions and constants of a notebook's cells."""
    cells = getattr(module, "In", None)
    if cells is None:
        raise VitscopeError(
            f"{name} is defined in no file and no notebook: put it into a file of Python, import "
            f"it from there, and give it as make=."
        )
    return _module_of_definitions(map(_cell_without_magic, cells))


def _cell_without_magic(cell: str) -> str:
    lines = cell.splitlines()
    return "\n".join("" if line.lstrip()[:1] in ("%", "!", "?") else line for line in lines)


def _module_of_definitions(sources: Iterable[str]) -> str:
    """Return a module with the last definition of each name in sources that follow each other."""
    found: dict[str, str] = {}
    for each in sources:
        for key, source in _definitions_to_save(each):
            found.pop(key, None)
            found[key] = source
    return "\n\n".join(found.values()) + "\n"


def _definitions_to_save(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and source of each import, class, function and literal constant of a source."""
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return
    for node in body:
        source = ast.get_source_segment(text, node) or ""
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield source, source
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            above = "".join(f"@{ast.unparse(each)}\n" for each in node.decorator_list)
            yield node.name, above + source
        elif isinstance(node, ast.Assign) and _is_literal(node.value):
            yield ast.unparse(node.targets[0]), source


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


def _prove_saved_outputs_are_same(
    file: Path, study: Study, network: nn.Module, images: Split, arch: Settings, of_main: bool
) -> None:
    (model,) = study.models.values()
    batch = images.normalize(slice(PROOFS), model.mean, model.std)
    logits = model.classes is not None
    with lend(network, logits=logits, output=model.output) as lent, torch.inference_mode():
        returned = tensors_of(lent(batch.to(device_of(network))))
        theirs = [widened(each).cpu().numpy() for each in returned]
    with TemporaryDirectory(prefix="vitscope-") as folder:
        given, found = Path(folder) / "images.npy", Path(folder) / "returned.npz"
        np.save(given, batch.numpy())
        files = map(str, (file, given, found))
        command = [sys.executable, "-m", "vitscope.scopes.saving", *files]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = done.stderr.strip().splitlines()
        reason = lines[-1] if done.returncode and lines else ""
        if not reason:
            with np.load(found) as ours:
                same = len(ours) == len(theirs) and all(map(_nearly_same, ours.values(), theirs))
            reason = "" if same else "its outputs are others"
    if reason:
        raise VitscopeError(
            f"The network cannot be built again as {arch} says ({reason.rstrip('.')}): give make=, "
            f"the function or class that returns it, and the keywords that it takes."
            f"{_example_of_saving_with_make(network)}{WHAT_IS_SAVED_OF_MAIN if of_main else ''}"
        )


def _nearly_same(ours: Array, theirs: Array) -> bool:
    return ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def _example_of_saving_with_make(network: nn.Module) -> str:
    """Return an example for a network of timm or Hugging Face, or an empty text for others."""
    if getattr(network, "pretrained_cfg", None):
        return (
            " If timm.create_model made it, give the other keywords that it was given, as in "
            "`scope.save(folder, depth=4)`."
        )
    config: Any = getattr(network, "config", None)
    if not hasattr(config, "to_diff_dict"):
        return ""
    kind, settings = type(network).__name__, type(config).__name__
    usual = type(config)().to_dict() | {"num_labels": type(config)().num_labels}
    own = config.to_dict() | {"num_labels": config.num_labels}
    plain = {key: own[key] for key in usual if isinstance(own.get(key), int | float | str)}
    changed = "".join(f", {key}={value!r}" for key, value in plain.items() if value != usual[key])
    return (
        f" For example, in a file net.py: `from transformers import {settings}, {kind}` and `def "
        f"build(**settings): return {kind}({settings}(**settings))`; then `from net import build` "
        f"and `scope.save(folder, make=build{changed})`."
    )


def rebuild_saved_network(file: Path, images: Path, returned: Path) -> None:
    """Build the network of a study from its description and weights, and write its outputs."""
    study = load_study(file)
    ((name, model),) = study.models.items()
    network = study.network(name)
    with TemporaryDirectory(prefix="vitscope-") as place:
        target = Path(place) / "weights.safetensors"
        convert(Path(model.checkpoint["path"]), network, target, label=name, origin="saved")
        again = load_converted_model(target, network)
    with torch.inference_mode():
        made = tensors_of(again(torch.from_numpy(np.load(images))))
    np.savez(returned, *(widened(each).numpy() for each in made))


if __name__ == "__main__":
    try:
        rebuild_saved_network(*map(Path, sys.argv[1:]))
    except VitscopeError as error:
        sys.exit(str(error))
