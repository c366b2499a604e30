"""Make the tables of a network in memory: what jobs of the workflow do, in this process.

Files have the places that they have in the workflow, below a folder of one's own.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import torch
from torch import nn

from vitscope.corruptions.building import build as corrupt
from vitscope.corruptions.corrupted import Corrupted
from vitscope.data.split import Split
from vitscope.errors import VitscopeError
from vitscope.files.tables import read_metadata, read_warnings, warned
from vitscope.files.tensors import TensorFile
from vitscope.measures import registry
from vitscope.measures.attending import why_none
from vitscope.measures.given import OnLatents, OnLoss, OnModel, OnNetwork, OnPredictions
from vitscope.measures.measure import Measure
from vitscope.measures.merging import Measured, merged, part_columns
from vitscope.networks.attention.finding import find_attention
from vitscope.networks.finding.block_table import BLOCKS, read_cut_points
from vitscope.networks.finding.blocks import list_blocks
from vitscope.networks.running.classifying import classify
from vitscope.networks.running.latents import extract_shard
from vitscope.networks.running.prediction_table import PREDICTIONS
from vitscope.scopes.bars import bar
from vitscope.scopes.borrowed import borrowed
from vitscope.settings.study import Study
from vitscope.training.augmented import Augmented
from vitscope.training.augmenting import augment_images
from vitscope.training.snapshots import END
from vitscope.video.reading import open_source
from vitscope.video.showing import show
from vitscope.video.views import Subject
from vitscope.workflow import params, reach

# Files that live in memory, where there is such a folder; and the most that one may take there.
IN_MEMORY, MOST_IN_MEMORY = Path("/dev/shm"), 1 << 30


class Maker:
    """Makes the tables of the one model of a study from its network and its images."""

    def __init__(
        self, study: Study, network: nn.Module, images: Split, device: torch.device, folder: Path
    ) -> None:
        (self.model,) = study.models
        self.study, self.images = study, images
        self._network, self._device, self._folder = network, device, folder
        self._settings = study.network(self.model)
        self._batch_size = study.analysis.batch_size
        self._lacking: dict[str, str | None] = {}

    def path(self, table: str, part: int | str | None = None) -> Path:
        """Return where a table is, or a part of it."""
        name = f"{self.model}.parquet" if part is None else f"{self.model}/{part}.parquet"
        return self._folder / table / name

    def make(self, table: str) -> Path:
        """Return the file of a table, which is made if it is not there."""
        path = self.path(table)
        if not path.is_file():
            if table == "blocks":
                self._list_blocks()
            elif table == "predictions":
                self._predict()
            else:
                self._measure(registry.declared(table))
        return path

    def why_not(self, table: str) -> str | None:
        """Return what is missing for a table, in a sentence, or None."""
        if table == "blocks":
            return None
        if table == "predictions":
            return self._without_classes(table)
        measure = registry.declared(table)
        measured = reach.measured_by(measure)
        if measured.needs == "weights" or "alike" in measured.reads:
            return f"{table} takes a training: the workflow measures it, of a study."
        if measured.of_pairs:
            return f"{table} takes two networks: ask vitscope.compare for it."
        if measured.split(self.study) not in self.study.dataset_of(self.model).splits:
            return (
                f"{table} needs the images of a split '{measured.split(self.study)}': the workflow "
                f"measures it, of a study that has one."
            )
        if measured.needs_classes and (missing := self._without_classes(table)):
            return missing
        if measured.reads_attention and self._without_attention:
            return f"{table} takes a network that attends: {self._without_attention}"
        if measured.needs == "loss" and self.study.loss is None:
            return (
                f"{table} needs the loss of the training: give loss={{'weight_decay': ...}}, 0 for "
                f"none, and in 'augment' how its images were augmented."
            )
        if "corrupted" in measured.reads and not self.images.has_pixels:
            return (
                f"{table} needs pixels of 8 bits, which are corrupted before they are normalized: "
                f"give images from 0 to 255, and mean= and std=."
            )
        if measured.needs == "network":
            return self._not_in_network(measure)
        return _refused(measure, self.study)

    def _not_in_network(self, measure: Measure) -> str | None:
        """Return what a network lacks for a measure of it alone, which is made to find that out."""
        if measure.name not in self._lacking:
            try:
                self.make(measure.name)
                self._lacking[measure.name] = None
            except VitscopeError as error:
                self._lacking[measure.name] = str(error)
        return self._lacking[measure.name]

    def _without_classes(self, table: str) -> str | None:
        if self.study.models[self.model].classes is None:
            return f"{table} needs a network that tells classes apart, and this one has no logits."
        if (self.images.labels < 0).any():
            return f"{table} needs the classes of the images: give labels=."
        return None

    @cached_property
    def _without_attention(self) -> str | None:
        with borrowed(self._network) as network:
            points = read_cut_points(self.make("blocks"))
            return why_none(find_attention(network, self._settings, points))

    def parts(self, measure: Measure) -> list[Path]:
        """Return the files of the parts of a measure, which are made if they are not there."""
        snapshot = f"{END}/" if measure.needs == "loss" else ""
        numbers = range(measure.parts(self.study, self.model))
        paths = [self.path(measure.name, f"{snapshot}{number}") for number in numbers]
        missing = [number for number in numbers if not paths[number].is_file()]
        if missing and measure.needs == "latents":
            self._measure_latents(self._with_it(measure))
        elif missing and measure.needs == "loss":
            self._measure_loss(measure, dict(zip(numbers, paths, strict=True)), missing)
        elif missing:
            for number in missing:
                self._measure_model(measure, number, paths[number])
        return paths

    def _with_it(self, measure: Measure) -> list[Measure]:
        """Return what is measured in one pass: the passes are what takes the time."""
        others = (registry.declared(name) for name in registry.names())
        return [measure] + [
            each
            for each in others
            if each.needs == "latents" and each != measure and not self.why_not(each.name)
        ]

    # What the scripts of the workflow do, each with what it finds here.

    def _list_blocks(self) -> None:
        points = self.study.models[self.model].points
        with borrowed(self._network) as network:
            blocks = list_blocks(self.model, network, self._settings, points)
        BLOCKS.write(blocks.table, self.path("blocks"), blocks.metadata())

    def _predict(self) -> None:
        split = self.study.analysis.split
        with self._running("predictions", len(self.images)) as network:
            predictions, warnings = classify(
                self.model,
                network,
                self.images,
                settings=self._settings,
                selection=params.classified(self.study, split),
                batch_size=self._batch_size,
                device=self._device,
                labels_are_truth=True,
            )
        PREDICTIONS.write(predictions, self.path("predictions"), self._origin() | warned(warnings))

    def _measure(self, measure: Measure) -> None:
        if measure.needs == "predictions":
            self._measure_predictions(measure)
        elif measure.needs == "network":
            self._measure_network(measure)
        elif measure.in_parts:
            self._merge(measure)
        else:
            self._measure_model(measure, 0, self.path(measure.name))

    def _merge(self, measure: Measure) -> None:
        modules = reach.merging(measure.name)
        blocks = self.make("blocks") if modules["blocks"] else None
        of_model = Measured(self.model, self.parts(reach.measured_by(measure)), blocks)
        settings = params.merging(self.study, measure.name, self.model)
        table, origin = merged(modules, {"": of_model}, settings)
        _room(measure, "table").TABLE.write(table, self.path(measure.name), origin)

    def _measure_latents(self, measures: Sequence[Measure]) -> None:
        analysis = self.study.analysis
        blocks = self.make("blocks")
        size = BLOCKS.read(blocks)[["channels", "height", "width"]].prod(axis=1).sum()
        with (
            self._running("feature maps", self.study.images(self.model), logits=False) as network,
            _scratch(4 * int(size) * min(analysis.shard_size, len(self.images))) as folder,
        ):
            for shard in range(self.study.shards(self.model)):
                file = folder / f"{shard}.safetensors"
                extract_shard(
                    network,
                    blocks,
                    self.images,
                    file,
                    shard=shard,
                    selection=self.study.selection(self.model),
                    settings=self._settings,
                    batch_size=self._batch_size,
                    dtype=analysis.latents_dtype,
                    device=self._device,
                    metadata={},
                )
                latents = TensorFile(file)
                given = OnLatents(latents, shard * analysis.shard_size, torch.get_num_threads())
                for measure in measures:
                    settings = measure.part(self.study, self.model, shard)
                    part = _room(measure, "compute").measure(given, **settings)
                    path = self.path(measure.name, shard)
                    _room(measure, "table").PART.write(part, path, latents.metadata)
                file.unlink()

    def _measure_predictions(self, measure: Measure) -> None:
        predictions = self.make("predictions")
        given = OnPredictions(self.model, PREDICTIONS.read(predictions), self.images)
        settings = measure.part(self.study, self.model, 0)
        table = _room(measure, "compute").measure(given, **settings)
        path, origin = self.path(measure.name), read_metadata(predictions)
        _room(measure, "table").TABLE.write(table, path, origin)

    def _measure_network(self, measure: Measure) -> None:
        settings = measure.part(self.study, self.model, 0)
        with borrowed(self._network, logits=True) as network:
            given = OnNetwork(self.model, network, self._settings)
            table = _room(measure, "compute").measure(given, **settings)
        _room(measure, "table").TABLE.write(table, self.path(measure.name), {})

    def _measure_model(self, measure: Measure, number: int, path: Path) -> None:
        settings = measure.part(self.study, self.model, number)
        blocks = self.make("blocks")
        points = read_cut_points(blocks)
        total = self._passes(measure, number, len(points))
        with _scratch() as folder, self._running(measure.name, total) as network:
            given = OnModel(
                model=self.model,
                network=network,
                cut_points=points,
                images=self.images,
                device=self._device,
                settings=self._settings,
                batch_size=self._batch_size,
                blocks=BLOCKS.read(blocks),
                corrupted=self._corrupted(settings, folder),
            )
            table = _room(measure, "compute").measure(given, **settings)
        columns = part_columns(_room(measure, "table"))
        columns.write(table, path, self._origin() | warned(given.warnings))

    def _corrupted(self, settings: dict[str, Any], folder: Path) -> list[Corrupted]:
        """Return the images under the corruptions that a part is measured on, if it is on any."""
        wanted, seed = params.corrupted(self.study), self.study.analysis.seed
        images, severities = wanted["images"], wanted["severities"]
        files = []
        for corruption in settings.get("corruptions", ()):
            files.append(folder / f"{corruption}.safetensors")
            corrupt(self.images, images, corruption, severities, seed, files[-1])
        return [Corrupted(file) for file in files]

    def _measure_loss(
        self, measure: Measure, paths: dict[int, Path], missing: Sequence[int]
    ) -> None:
        columns = _room(measure, "table").TABLE
        with _scratch() as folder:
            images = self._augmented(folder / "augmented.safetensors")
            total = sum(self._passes(measure, number, 0) or 0 for number in missing) or None
            with self._running(measure.name, total) as network:
                given = OnLoss(network, images, self._device, say=lambda _: None)
                for number in missing:
                    settings = measure.part(self.study, self.model, number)
                    part = _room(measure, "compute").measure(given, **settings)
                    named = columns.named(part, model=self.model, snapshot=END)
                    origin = {"data_sha256": images.metadata["data_sha256"]}
                    columns.write(named, paths[number], origin)

    def _augmented(self, path: Path) -> Augmented:
        augment_images(
            self.images,
            params.augmentation(self.study, self.model),
            path=path,
            mean=self._settings["mean"],
            std=self._settings["std"],
            **params.drawing(self.study),
        )
        return Augmented(path)

    def _passes(self, measure: Measure, number: int, cut_points: int) -> float | None:
        """Return how many images a part gives to the network, if that is known."""
        work = measure.work(self.study, self.model, number, len(self.images), cut_points)
        known = work is not None and not work.most and work.keeps == "pass"
        return work.passes if work is not None and known else None

    @contextmanager
    def _running(
        self, what: str, images: float | None, *, logits: bool = True
    ) -> Iterator[nn.Module]:
        """Lend the network to a measurement, and show how far that is."""
        with borrowed(self._network, logits=logits) as network, bar(network, what, images):
            yield network

    def _origin(self) -> dict[str, str]:
        return {"data_sha256": self.images.digest}

    def video(self, source: Path, out: Path, settings: dict[str, Any]) -> list[str]:
        """Write what the network looks at in a video; return what of it cannot be read."""
        if not self.images.has_pixels and not self._is_scaled():
            raise VitscopeError(
                "A video has pixels from 0 to 255, and nothing says how the network takes these: "
                "look at images of pixels, and give mean= and std=."
            )
        model = self.study.models[self.model]
        with self._running("frames", settings["frames"], logits=False) as network:
            subject = Subject(
                model=self.model,
                label=model.label,
                network=network,
                cut_points=read_cut_points(self.make("blocks")),
                settings=self._settings,
                taking=params.taking(self.study.dataset_of(self.model)),
                device=self._device,
            )
            video = open_source(source.expanduser(), {}, settings["frames_per_second"])
            facts = {"Frames": source.name}
            return show(subject, video, out, settings, facts, where="video", say=lambda _: None)

    def _is_scaled(self) -> bool:
        """Tell whether it is known how the network takes pixels from 0 to 1."""
        return any(self._settings["mean"]) or any(each != 1 for each in self._settings["std"])

    def warnings(self) -> list[str]:
        """Return what makes values of the tables that there are doubtful."""
        return read_warnings(sorted(self._folder.glob(f"*/{self.model}.parquet")))


def _refused(measure: Measure, study: Study) -> str | None:
    """Return why settings cannot be measured, if they cannot."""
    try:
        measure.check(study)
    except VitscopeError as error:
        return str(error)
    return None


def _room(measure: Measure, part: str) -> ModuleType:
    return import_module(registry.module(measure.name, part))


@contextmanager
def _scratch(size: int | None = None) -> Iterator[Path]:
    """Give a folder for a while: in memory, if files of `size` bytes have room there."""
    in_memory = size is not None and size <= MOST_IN_MEMORY and IN_MEMORY.is_dir()
    has_room = in_memory and shutil.disk_usage(IN_MEMORY).free > 2 * (size or 0)
    with TemporaryDirectory(prefix="vitscope-", dir=IN_MEMORY if has_room else None) as place:
        yield Path(place)
