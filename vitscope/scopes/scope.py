"""Look at a network in memory."""

import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import nn

from vitscope.data.class_numbers import IMAGENET, imagenet_class_names
from vitscope.data.split import Split
from vitscope.drawing.figure import Member
from vitscope.errors import VitscopeError, quoted
from vitscope.files.tables import read_metadata
from vitscope.files.tensors import TensorFile
from vitscope.jobs.tables import find_table
from vitscope.measures import registry
from vitscope.measures.given import Parts
from vitscope.measures.own.compute import call_own_measure, read_maps
from vitscope.measures.per_image import merge_means
from vitscope.networks.attention.finding import add_attentions_read
from vitscope.networks.building import networks, own_code
from vitscope.networks.building.networks import Output
from vitscope.networks.finding.cut_points import BLOCKS, CUT_POINT, Side
from vitscope.networks.running.asked_interventions import AskedIntervention, How, Tokens
from vitscope.networks.running.intervening import Intervention, Of
from vitscope.scopes.images import WantedImages, split_file_in, store_scope_images
from vitscope.scopes.lending import choose_device_for_lending, device_of, lend
from vitscope.scopes.making import Maker
from vitscope.scopes.saving import save_as_study
from vitscope.scopes.study import check_image_size, describe_scope_as_study, describe_scope_video
from vitscope.scopes.tables import OTHERS, Tables
from vitscope.settings.study import Study


class Scope(Tables):
    """A network and images: each table of a measure is made when it is first asked for."""

    def __init__(
        self,
        study: Study,
        network: nn.Module,
        images: Split,
        notes: list[str],
        device: Any,
        folder: "TemporaryDirectory[str]",
        interventions: Sequence[tuple[Intervention, str]] = (),
    ) -> None:
        ((self.name, model),) = study.models.items()
        self.study = study
        self.notes = notes
        # The folder is removed when this object is.
        self._folder = folder
        self._network = network
        # For each of the user's functions, how it was called, and its table.
        self._own: dict[str, tuple[Any, pd.DataFrame]] = {}
        # The calls themselves, which a comparison repeats for other networks; they are not pickled.
        self.calls: dict[str, Callable[[Any], pd.DataFrame]] = {}
        self._device = device
        # Interventions, and what is said of each.
        self._interventions = interventions
        made = [intervention for intervention, _ in interventions]
        self._maker = Maker(study, network, images, device, Path(folder.name), made)
        kinds = set(BLOCKS.read(self._maker.make("blocks"))["kind"])
        label = ", ".join([model.label, *(said for _, said in interventions)])
        self.members = [Member(self.name, label, _family_by_kinds(kinds))]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the network, the images, and every table made so far."""
        folder = Path(self._folder.name)
        state = {"study": self.study, "network": self._network}
        state |= {"notes": self.notes, "device": self._device}
        state |= {"interventions": self._interventions}
        paths = [path for path in folder.rglob("*") if path.is_file()]
        files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
        return _unpickle_scope, (state, self._own, files)

    def maps(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """Yield the name of each cut point, with the feature maps of all images there.

        Maps are arrays (images, channels, height, width). The maps of all cut points are in memory.
        """
        found: dict[str, list[npt.NDArray[Any]]] = {}
        for _, file in self._maker.latents():
            shard = TensorFile(file)
            for name in shard.names:
                found.setdefault(name, []).append(read_maps(shard, name))
        for name in [*found]:
            yield name, np.concatenate(found.pop(name))

    def latents(self, path: Path | str) -> Path:
        """Write the feature maps of all cut points to a file, with the labels of the images.

        The name of the file ends in its format: `.npz`, `.h5` or `.zarr.zip`. Only the maps of one
        cut point at a time are in memory; a temporary folder holds all of them.
        """
        with TemporaryDirectory(dir=self._folder.name) as folder:
            self._maker.export(Path(path), Path(folder))
        return Path(path)

    def measure(self, function: Callable[..., Any], **keywords: Any) -> pd.DataFrame:
        """Measure with a function of your own, and return the table.

        `function` is called with the feature maps of each cut point, an array (images, channels,
        height, width), and with the keywords, and has to return one number for each image. `plot`
        draws the table by the name of the function.
        """
        name = function.__name__
        if name in {*registry.names(), *registry.kinds(), *OTHERS}:
            raise VitscopeError(
                f"vitscope has a measure or a kind of figure of the name {quoted(name)}: give the "
                f"function another name."
            )
        size = self.study.analysis.shard_size
        parts = [
            call_own_measure(function, TensorFile(file), shard * size, keywords)
            for shard, file in self._maker.latents()
        ]
        points = BLOCKS.read(self._maker.make("blocks"))[[*CUT_POINT]]
        bootstrap = asdict(self.study.analysis.bootstrap)
        table = merge_means(Parts(self.name, iter(parts), points), "value", **bootstrap)
        self._own[name] = (_identity_of_call(function, keywords), table)
        self.calls[name] = lambda scope: scope.measure(function, **keywords)
        return self.table(name)

    def intervene(
        self,
        at: str | int,
        how: How = "zero",
        *,
        of: Of = "branch",
        heads: Sequence[int] | None = None,
        tokens: Tokens | None = None,
        channels: Sequence[int] | None = None,
        factor: float | None = None,
    ) -> "Scope":
        """Return a scope of the network in which a part of each pass is changed.

        `at` is the name or the index of a cut point, and `of` what is changed there: the `branch`
        that joins the stream, the `stream` behind it, or the outputs of `heads` of the attention
        before it. `tokens` and `channels` choose some of a branch or stream: tokens are `class`,
        `registers`, `positions`, or pairs of row and column on the map.

        `how` says what takes the place of the values: `zero`, their `mean` over the images, those
        of another image (`resample`), or the values times a `factor` (`scale`). A function gets
        values (images, tokens, channels), of heads (images, windows, heads, queries, channels),
        and returns others of this shape.

        All tables are those of the changed network, except for tables of its weights. Several
        interventions follow one another: `scope.intervene(...).intervene(...)`.
        """
        asked = AskedIntervention(at, how, of, heads, tokens, channels, factor)
        made = self._maker.intervene(asked)
        return self._measured_anew(self._device, [*self._interventions, (made, str(asked))])

    def _measured_anew(
        self, device: torch.device, interventions: Sequence[tuple[Intervention, str]] = ()
    ) -> "Scope":
        """Return a scope of the same network, images and cut points in which nothing is measured.

        It measures the network with the weights that it has by then.
        """
        folder = TemporaryDirectory(prefix="vitscope-")
        for here in (split_file_in(Path(self._folder.name)), self._maker.make("blocks")):
            there = Path(folder.name) / here.relative_to(self._folder.name)
            there.parent.mkdir(parents=True, exist_ok=True)
            os.link(here, there)
        images = Split(split_file_in(Path(folder.name)))
        given = self.notes, device, folder, interventions
        return Scope(self.study, self._network, images, *given)

    def own(self) -> dict[str, Any]:
        """Return the calls of the user's functions that have measured, by the function's name."""
        return {name: call for name, (call, _) in self._own.items()}

    def _whole_table(self, name: str) -> pd.DataFrame:
        """Return a table as the workflow has it; measure it if it is new."""
        if name in self._own:
            return self._own[name][1]
        if missing := self._maker.why_not(name):
            raise VitscopeError(missing)
        return find_table(name).read(self._maker.make(name))

    def available(self) -> list[str]:
        """Return the names of the tables that exist or can be made."""
        there = [name for name in (*OTHERS, *registry.names()) if not self._maker.why_not(name)]
        return [*there, *self._own]

    @property
    def read(self) -> str:
        """How much is read: "24 of 24 sums, 12 of 12 attentions, 100% of the operations"."""
        read = read_metadata(self._maker.make("blocks"))["read"]
        return add_attentions_read(read, self._maker.attention)

    def _what_is_read(self) -> str:
        return self.read

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt the values measured so far."""
        return self._maker.warnings()

    def video(
        self,
        source: Path | str,
        out: Path | str,
        shows: str = "heads",
        *,
        block: str | int | None = None,
        heads: Sequence[int] | None = None,
        query: Sequence[float] | None = None,
        brightest: float | None = None,
        fusion: str = "mean",
        frames: int | None = None,
        frames_per_second: float | None = None,
        lossless: bool = False,
    ) -> Path:
        """Show each frame of a video beside what the network makes of the frame.

        `source` is a folder of frames, an animated GIF, WebP or PNG, or any video where ffmpeg is
        on the PATH; the name of `out` ends in the format, `.webp`, `.gif` or, by ffmpeg, `.mp4`.
        `shows` is `heads` (of a block), `rollout`, or `components` (of tokens). Keywords are the
        keys of `videos` in a study.
        """
        settings = describe_scope_video(
            shows=shows,
            block=block,
            heads=None if heads is None else [*heads],
            query=None if query is None else [*query],
            brightest=brightest,
            fusion=fusion,
            frames=frames,
            frames_per_second=frames_per_second,
            lossless=lossless,
        )
        self._maker.video(Path(source), Path(out), settings)
        return Path(out)

    def save(self, folder: Path | str, make: Any = None, **keywords: Any) -> Path:
        """Save a study with weights and images, from which the workflow makes the same tables.

        `make` is the function or class that returns such a network when it is called with
        `keywords`. Networks of `bundled`, and of a class without arguments, need neither. A network
        of `timm.create_model` needs no `make`, but the `keywords` that it was made with, as
        `depth=4`, except for `num_classes`, `img_size`, `in_chans` and `pretrained`. Of a script or
        notebook that defines the network, imports, definitions and plain constants are saved.
        """
        if self._interventions:
            raise VitscopeError(
                "Save the scope of the network as it is, and name the interventions in the study, "
                "in `models.NAME.interventions`."
            )
        images = self._maker.images
        kinds = [kind for kind in self.kinds() if kind not in self._own]
        return save_as_study(self.study, kinds, self._network, images, Path(folder), make, keywords)


def _identity_of_call(function: Callable[..., Any], keywords: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what identifies a call, even if its cell runs again: place, byte code and keywords."""
    code = getattr(function, "__code__", None)
    plain = [each for each in code.co_consts if not isinstance(each, CodeType)] if code else []
    said = (code.co_code, code.co_names, repr(plain)) if code else ()
    return own_code.file_and_line_of(function), said, pickle.dumps(keywords)


def _unpickle_scope(
    state: Mapping[str, Any], own: dict[str, Any], files: Mapping[str, bytes]
) -> Scope:
    folder = TemporaryDirectory(prefix="vitscope-")
    for name, data in files.items():
        path = Path(folder.name) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    scope = Scope(images=Split(split_file_in(Path(folder.name))), folder=folder, **state)
    scope._own = own
    return scope


def _family_by_kinds(kinds: set[str]) -> str:
    if "msa" in kinds:
        return "alternet" if "conv" in kinds else "vit"
    return "resnet" if "conv" in kinds else "mixer"


def look(
    model: nn.Module,
    images: Any,
    labels: Any = None,
    mean: Sequence[float] | float | None = None,
    std: Sequence[float] | float | None = None,
    points: Sequence[Mapping[str, Any]] | None = None,
    device: torch.device | str | None = None,
    *,
    name: str | None = None,
    image_size: int | Sequence[int] | None = None,
    classes: int | Literal["found"] | None = "found",
    class_names: Sequence[str] | Literal["imagenet"] | None = None,
    output: Output = None,
    norms: Side = "after",
    loss: Mapping[str, Any] | None = None,
    analysis: Mapping[str, Any] | None = None,
) -> Scope:
    """Look at a network: find its cut points, and offer every measure of it on some images.

    Images are a tensor or an array of a batch, a loader of batches, a data set, a list of pictures,
    or the path of a folder; labels may come with them. `mean` and `std` normalize pixels for the
    network; without them, images are used unchanged.

    `points` are the modules to read, in place of the cut points that are found. `name` is the name
    of the network in tables and figures. `image_size` is the side to which pictures are cropped, or
    height and width. `classes` is the number of classes, or None if the network returns features;
    by default, this is found out: a network returns features if its `num_classes` is 0 or its last
    module is a head of `nn.Identity`. `class_names` are the names of all classes, or "imagenet", to
    show with predictions. `output` is the name or index of the tensor that holds the logits, if the
    network returns several. `norms` says whether networks that normalize the sums of stream and
    branch are read "after" or "before" this normalization. `loss` has the weight decay and the
    augmentation of the training, and `analysis` the settings of measures; both are written as in a
    study.

    The network is borrowed for each measurement, and unchanged afterwards.
    """
    if not isinstance(model, nn.Module):
        raise VitscopeError(f"`model` is a {type(model).__name__}, allowed: a torch.nn.Module.")
    model = networks.unwrap_compiled(model)
    place = choose_device_for_lending(model, device)
    folder = TemporaryDirectory(prefix="vitscope-")
    try:
        names = imagenet_class_names() if class_names == IMAGENET else class_names
        named = None if names is None else [*names]
        # What a network of timm says about the images that it was trained on.
        trained_on = getattr(model, "pretrained_cfg", None)
        said = trained_on if isinstance(trained_on, Mapping) else {}
        wanted = WantedImages(mean, std, check_image_size(image_size), named, said)
        found = partial(_count_classes_for_look, model, output, classes)
        stored = store_scope_images(images, labels, wanted, found, Path(folder.name))
        if classes == "found" and (why := networks.why_built_without_classifier(model)):
            stored.notes.append(
                f"network: {why}, so that it returns features: give classes= if not"
            )
        called = name or str(getattr(model, "bundled_as", type(model).__name__))
        study = describe_scope_as_study(called, stored, points, norms, output, loss, analysis)
        scope = Scope(study, model, stored.split, stored.notes, place, folder)
    except BaseException:
        folder.cleanup()
        raise
    for note in stored.notes:
        print(f"vitscope: {note}")
    for warning in scope.warnings:
        print(f"vitscope: warning: {warning}")
    return scope


def _count_classes_for_look(
    model: nn.Module, chosen: Output, said: int | Literal["found"] | None, shape: tuple[int, ...]
) -> int | None:
    """Run the network once; return how many classes it tells apart, None if it has no logits."""
    images = torch.zeros(2, *shape, dtype=networks.own_type(model), device=device_of(model))
    with lend(model) as network, torch.inference_mode():
        try:
            output = network(images)
        except Exception as error:
            plain = f"{type(error).__name__}: {error}".rstrip(".") + "."
            reason = own_code.explain_network_code_failure(error) or plain
            size = "x".join(map(str, shape))
            raise VitscopeError(
                f"The network ({type(model).__name__}) does not take images of the shape {size}: "
                f"{reason}"
            ) from error
    try:
        logits = networks.logits_of_network(output, chosen)
    except VitscopeError:
        if chosen is not None or isinstance(said, int):
            raise
        return None
    found = logits.shape[1] if logits.ndim == 2 and logits.shape[1] > 1 else None
    if isinstance(said, int) and said != found:
        raise VitscopeError(
            f"classes: found {said}, allowed: {quoted(found)}, as the network returns a tensor "
            f"{'x'.join(map(str, logits.shape))} for {len(images)} images."
        )
    has_none = said is None or (said == "found" and networks.why_built_without_classifier(model))
    return None if has_none else found
