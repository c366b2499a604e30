"""Make the tables of a network in memory, with the jobs of the workflow, in this process."""

import shutil
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn
from tqdm import TqdmWarning

from vitscope.data.split import Split
from vitscope.errors import VitscopeError, error_sentence_of, quoted
from vitscope.files.pairs import pair_name
from vitscope.files.tables import has_table_part, read_warnings
from vitscope.jobs.job import Files, Names, Resources, find_job
from vitscope.jobs.latents import FORMATS
from vitscope.jobs.measures import case_of, job_values_of_measures, measure_of_parts
from vitscope.measures import registry
from vitscope.measures.attention_tokens import explain_no_attention
from vitscope.measures.measure import Measure
from vitscope.measures.needs import READABLE, MadeInput
from vitscope.networks.attention.finding import FoundAttention, find_attention
from vitscope.networks.building.networks import (
    count_images_into_network,
    why_built_without_classifier,
)
from vitscope.networks.finding.cut_points import BLOCKS, CutPoint, read_cut_points
from vitscope.networks.running.asked_interventions import (
    AskedIntervention,
    Running,
    describe_intervention,
)
from vitscope.networks.running.intervening import Intervention, intervening
from vitscope.networks.running.line import why_no_line
from vitscope.networks.running.predictions import why_predictions_differ
from vitscope.scopes.lending import device_of, lend
from vitscope.settings.keys import VideoSettings
from vitscope.settings.snapshots import END
from vitscope.settings.study import Study
from vitscope.typed import typed

with warnings.catch_warnings():
    # tqdm would warn every notebook that has no ipywidgets.
    warnings.simplefilter("ignore", TqdmWarning)
    from tqdm import auto


# A folder whose files are in memory, on systems that have it.
IN_MEMORY = Path("/dev/shm")
MOST_IN_MEMORY = 1 << 30  # The maximum number of bytes there.


class Maker:
    """Makes the tables of the one model of a study from its network and its images."""

    def __init__(
        self,
        study: Study,
        network: nn.Module,
        images: Split,
        device: torch.device,
        folder: Path,
        interventions: Sequence[Intervention] = (),
    ) -> None:
        (self.model,) = study.models
        self.interventions = interventions
        self.study, self.images = study, images
        self._network, self._device, self._folder = network, device, folder
        self._settings = study.network(self.model)
        warn = partial(print, "vitscope:")
        self._resources = Resources(torch.get_num_threads(), say=lambda _: None, warn=warn)
        self._lacking: dict[str, str | None] = {}
        # The measures of feature maps that a pass makes besides the one that is asked for.
        self._alongside = {*registry.names()}

    def path(self, table: str, part: int | str | None = None) -> Path:
        """Return the path of a table, or of a part of it."""
        name = f"{self.model}.parquet" if part is None else f"{self.model}/{part}.parquet"
        return self._folder / table / name

    def make(self, table: str) -> Path:
        """Return the file of a table; make it if it does not exist."""
        path, inputs = self.path(table), dict[str, Any]()
        if not path.is_file():
            if table == "blocks":
                with self._lend_network() as network:
                    self.run("convert_checkpoint", {"network": network}, {"blocks": str(path)})
            elif table == "predictions":
                with self._lend_with_progress("predictions", len(self.images)) as network:
                    inputs = {"checkpoint": network, "images": self.images}
                    names = {"split": self.study.analysis.split}
                    self.run("predict", inputs, {"predictions": path}, names)
            elif (measure := registry.declared(table)).in_parts:
                inputs = {"parts": self.parts(measure_of_parts(measure))}
                if measure.merge.at_cut_points:
                    inputs["blocks"] = self.make("blocks")
                self.run("merge", inputs, {"table": path}, {"measure": table})
            else:
                self._measure_parts(measure, {0: path})
        return path

    def make_only(self, tables: Collection[str]) -> None:
        """Let passes make no other tables than these, for who wants no others."""
        measures = {*tables} & {*registry.names()}
        self._alongside = {measure_of_parts(registry.declared(each)).name for each in measures}

    def why_not(self, table: str, alone: bool = True) -> str | None:
        """Say in a sentence why a table cannot be made; return None if it can.

        Unless it is made of this network `alone`, a table of several can be.
        """
        if table == "blocks":
            return None
        if table == "predictions":
            return self._why_no_classes(table)
        measure = registry.declared(table)
        measured = measure_of_parts(measure)
        taken = measured.inputs.values()
        if READABLE["alike"] in taken or any(isinstance(each, str) for each in taken):
            return f"{table} takes a training: the workflow measures it, of a study."
        if alone and measured.models > 1:
            many = ("two", "three")[measured.models - 2]
            return f"{table} takes {many} networks: ask vitscope.compare for it."
        if measured.split(self.study) not in self.study.dataset_of(self.model).splits:
            return (
                f"{table} needs the images of a split '{measured.split(self.study)}': the workflow "
                f"measures it, of a study that has one."
            )
        if measured.needs_classes and (missing := self._why_no_classes(table)):
            return missing
        by_label = measured.needs_classes and measured.by_label
        if (by_label or measure.needs_labels) and (self.images.labels < 0).any():
            return f"{table} needs the classes of the images: give labels=."
        if measured.reads_attention and self._why_no_attention:
            return f"{table} takes a network that attends: {self._why_no_attention}"
        if measured.need.of_training and self.study.loss is None:
            return (
                f"{table} needs the loss of the training: give loss={{'weight_decay': ...}}, 0 for "
                f"none; add 'augment' with how its images were augmented, as without it, or with "
                f"'none', they are taken as they are."
            )
        if "corrupted" in measured.reads and not self.images.has_pixels:
            return (
                f"{table} needs pixels of 8 bits, which are corrupted before they are normalized: "
                f"give images from 0 to 255, and mean= and std=."
            )
        if self.interventions and measured.takes_gradients(self.study, self.model):
            return f"{table} takes gradients, and none passes through an intervention."
        if measured.need.of_images:
            return error_sentence_of(partial(measure.check, self.study))
        # Only measuring shows whether a network suits a measure that takes no images.
        if table not in self._lacking:
            self._lacking[table] = error_sentence_of(partial(self.make, table))
        return self._lacking[table]

    def intervene(self, asked: AskedIntervention) -> Intervention:
        """Return an intervention after those that are made here already."""
        sizes = BLOCKS.read(self.make("blocks"))[["height", "width"]]
        shown = self._settings, self.images, range(len(self.images))
        with self._lend_network() as network:
            map_sizes = [*sizes.itertuples(index=False, name=None)]
            network.to(self._device)
            size = self.study.analysis.batch_size, self._device, map_sizes
            running = Running(network, *shown, *size, self.interventions)
            return describe_intervention(asked, self.points, self.attention.attentions, running)

    def _why_no_classes(self, table: str) -> str | None:
        if self.study.models[self.model].classes is None:
            return f"{table} needs a network that tells classes apart: {self._why_no_logits}"
        return None

    @cached_property
    def _why_no_logits(self) -> str:
        if why := why_built_without_classifier(self._network):
            return f"this one says that it does not ({why})."
        images = self.images.normalize(slice(2), self._settings["mean"], self._settings["std"])
        try:
            with lend(self._network, logits=True) as network, torch.inference_mode():
                shape = "x".join(map(str, network(images.to(device_of(network))).shape))
        except VitscopeError as error:
            return str(error)
        return f"this one has no logits, but returns a tensor {shape} for {len(images)} images."

    @property
    def points(self) -> list[CutPoint]:
        return read_cut_points(self.make("blocks"))

    @cached_property
    def attention(self) -> FoundAttention:
        with self._lend_network() as network:
            return find_attention(network, self._settings, self.points)

    @property
    def _why_no_attention(self) -> str | None:
        return explain_no_attention(self.attention)

    def parts(self, measure: Measure) -> list[Path]:
        """Return the files of the parts of a measure; make those that do not exist."""
        numbers = range(measure.parts(self.study, self.model))
        if measure.needs == "latents":
            passes = [self.path("passes", number) for number in numbers]
            if not all(has_table_part(path, measure.name) for path in passes):
                self._measure_latents(measure, passes)
            return passes
        snapshot = f"{END}/" if measure.need.of_training else ""
        paths = {number: self.path(measure.name, f"{snapshot}{number}") for number in numbers}
        missing = {number: path for number, path in paths.items() if not path.is_file()}
        self._measure_parts(measure, missing)
        return [*paths.values()]

    def run(
        self,
        job: str,
        inputs: Files,
        outputs: Files,
        names: Names | None = None,
        study: Study | None = None,
        **values: object,
    ) -> None:
        """Run a job of the workflow in this process; `values` override those of the study."""
        work = find_job(job)
        said = work.values(study or self.study, {"model": self.model, **(names or {})})
        work.run(inputs, outputs, said | {"device": self._device} | values, self._resources)

    def _measure_parts(self, measure: Measure, paths: Mapping[int, Path]) -> None:
        """Measure the parts in `paths`, by index; make an input once if several parts share it."""
        points = len(self.points)
        with _temporary_folder() as shared:
            for number, path in paths.items():
                names = {"measure": measure.name, "model": self.model, "part": str(number)}
                case = case_of(self.study, names)
                with _temporary_folder() as own:
                    inputs = {
                        name: self._make_input(
                            made, case.names(made), own if "part" in made.about else shared
                        )
                        for name, made in measure.inputs.items()
                        if isinstance(made, MadeInput)
                    }
                    runs, total = measure.need.runs, self._passes_of_part(measure, number, points)
                    with (
                        self._lend_with_progress(measure.name, total)
                        if runs
                        else self._lend_network()
                    ):
                        self.run("measure", inputs, {"table": path}, names)

    def why_no_line(self, table: str, other: "Maker") -> str | None:
        """Say in a sentence why nothing can be measured between two networks; None if it can."""
        if missing := self.why_not(table, alone=False) or other.why_not(table, alone=False):
            return missing
        if self.interventions or other.interventions:
            return f"{table} is of weights, in which no intervention is: compare networks without."
        if any(
            self._settings[key] != other._settings[key] for key in ("mean", "std", "image_size")
        ):
            return (
                f"{table} needs networks that take images alike: give both one mean= and std=, and "
                f"images of one size."
            )
        return why_no_line(self._network, other._network, (self.model, other.model))

    def make_line(self, measure: Measure, others: Sequence["Maker"]) -> Path:
        """Return the file of a table of networks; without `loss=`, no statistics are reset."""
        names = {"measure": measure.name, "model": self.model}
        # Networks of one name have folders, and so tables, of their own.
        path = self.path(measure.name, pair_name(other._folder.name for other in others))
        if path.is_file():
            return path
        case = case_of(self.study, names)
        given: dict[str, Any] = {
            "others": [other.model for other in others],
            "other_networks": [other._settings for other in others],
        }
        with _temporary_folder() as folder, ExitStack() as stack:
            lent = [stack.enter_context(other._lend_network()) for other in others]
            inputs = {
                name: lent if made.of_others else self._make_input(made, case.names(made), folder)
                for name, made in measure.inputs.items()
                if isinstance(made, MadeInput)
                and (made.job != "augment_images" or self.study.loss is not None)
            }
            total = self._passes_of_part(measure, 0, len(self.points))
            with self._lend_with_progress(measure.name, total):
                self.run("measure", inputs, {"table": path}, names, **given)
        return path

    def _make_input(self, made: MadeInput, names: Names | Sequence[Names], folder: Path) -> Any:
        if not isinstance(names, Mapping):
            return [self._make_input(made, each, folder) for each in names]
        if made.output:
            return self.make(made.output)
        here = {"convert_checkpoint": self._network, "build_split": self.images}
        if made.job in here:
            return here[made.job]
        path = folder / f"{'-'.join([made.job, *names.values()])}.safetensors"
        if not path.exists():
            self.run(made.job, {"images": self.images}, {"images": path}, names)
        return path

    def latents(self) -> Iterator[tuple[int, Path]]:
        """Yield the index of each shard, and the file of its latents, then remove the file."""
        blocks = self.make("blocks")
        size = BLOCKS.read(blocks)[["channels", "height", "width"]].prod(axis=1).sum()
        most = min(self.study.analysis.shard_size, len(self.images))
        with (
            self._lend_with_progress("feature maps", self.study.images(self.model)) as network,
            _temporary_folder(4 * int(size) * most) as folder,
        ):
            for shard in range(self.study.shards(self.model)):
                latents = folder / f"{shard}.safetensors"
                inputs = {"checkpoint": network, "blocks": blocks, "images": self.images}
                self.run("extract_latents", inputs, {"latents": latents}, {"part": str(shard)})
                yield shard, latents
                latents.unlink()

    def export(self, path: Path, folder: Path) -> None:
        """Write all latents to a file of another format; `folder` holds the shards meanwhile."""
        ends = FORMATS.values()
        found = next((each for each in ends if path.name.endswith(f".{each}")), None)
        if found is None:
            raise VitscopeError(
                f"{path}: found {quoted(path.suffix)} as the format, allowed: {', '.join(ends)}."
            )
        shards = [shutil.copy(file, folder) for _, file in self.latents()]
        inputs = {"latents": shards, "blocks": self.make("blocks"), "images": self.images}
        self.run("export_latents", inputs, {"latents": path}, {"container": found})

    def _measure_latents(self, measure: Measure, passes: Sequence[Path]) -> None:
        known = [registry.declared(name) for name in registry.names() if name in self._alongside]
        of_latents = [each for each in known if each.needs == "latents" and each != measure]
        measures = [measure, *(each for each in of_latents if not self.why_not(each.name))]
        blocks = self.make("blocks")
        with self._lend_with_progress("feature maps", self.study.images(self.model)) as network:
            inputs = {"checkpoint": network, "blocks": blocks, "images": self.images}
            for shard, path in enumerate(passes):
                names = {"model": self.model, "part": str(shard)}
                measured = job_values_of_measures(self.study, names, measures)
                self.run("measure_pass", inputs, {"parts": path}, names, **measured)

    def _passes_of_part(self, measure: Measure, number: int, cut_points: int) -> float | None:
        work = measure.work(self.study, self.model, number, len(self.images), cut_points)
        return work.passes if work and not work.most and work.keeps == "pass" else None

    def _lend_network(self) -> AbstractContextManager[nn.Module]:
        model = self.study.models[self.model]
        return lend(self._network, logits=model.classes is not None, output=model.output)

    @contextmanager
    def _lend_with_progress(self, what: str, images: float | None) -> Iterator[nn.Module]:
        """Lend the network to a measurement; show a bar that counts its images."""
        # In a notebook the bar is part of the page; elsewhere it is shown on a terminal only.
        watched = auto.notebook_tqdm is not auto.std_tqdm or sys.stderr.isatty()
        bar = {"desc": what, "unit": "image", "leave": False, "disable": not watched}
        total = images and round(images)
        with self._lend_network() as network, auto.tqdm(total=total, **bar) as shown:
            hook = count_images_into_network(network, shown.update)
            try:
                with intervening(network, self.interventions):
                    yield network
            finally:
                hook.remove()

    def video(self, source: Path, out: Path, settings: dict[str, Any]) -> None:
        """Draw what the network makes of a video; refuse images whose scaling is unknown."""
        mean, std = self._settings["mean"], self._settings["std"]
        # A mean of 0 and a std of 1 do not say how the network takes pixels from 0 to 1.
        if not self.images.has_pixels and not any(mean) and all(each == 1 for each in std):
            raise VitscopeError(
                "A video has pixels from 0 to 255, and nothing says how the network takes these: "
                "look at images of pixels, and give mean= and std=."
            )
        place = {"model": self.model, "source": {"path": str(source)}}
        video = typed(settings | place, VideoSettings)
        files = {"blocks": self.make("blocks"), "source": source.expanduser()}
        with self._lend_with_progress("frames", settings["frames"]) as network:
            study = replace(self.study, videos={"video": video})
            inputs = {"checkpoint": network, **files}
            names = {"video": "video"}
            # Errors name the keyword, since there is no section `videos` here.
            self.run("draw_video", inputs, {"video": out}, names, study, where="video")

    def warnings(self) -> list[str]:
        """Return reasons to doubt the network, and the warnings in the tables made so far."""
        of_tables = read_warnings(sorted(self._folder.glob(f"*/{self.model}.parquet")))
        return [*self._doubts_about_network, *of_tables]

    @cached_property
    def _doubts_about_network(self) -> list[str]:
        image = self.images.normalize(slice(1), self._settings["mean"], self._settings["std"])
        with lend(self._network) as network:
            why = why_predictions_differ(network, image.to(device_of(network)))
        return [why] if why else []


@contextmanager
def _temporary_folder(size: int | None = None) -> Iterator[Path]:
    """Give a temporary folder, in memory if there is room for twice `size` bytes."""
    in_memory = size is not None and size <= MOST_IN_MEMORY and IN_MEMORY.is_dir()
    has_room = in_memory and shutil.disk_usage(IN_MEMORY).free > 2 * (size or 0)
    with TemporaryDirectory(prefix="vitscope-", dir=IN_MEMORY if has_room else None) as place:
        yield Path(place)
