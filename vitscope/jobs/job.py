"""The declaration of a job: its work, what its result depends on, and what it costs.

Snakemake reads the modules of this folder with the rules, so they import heavy libraries only
inside functions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from vitscope.files.pairs import PREFIXES, by_prefix
from vitscope.measures.work import Work

if TYPE_CHECKING:
    from vitscope.settings.keys import Dataset
    from vitscope.settings.study import Study as Study
else:
    # A running job uses no study, so it need not import the module.
    Study = Any

# The wildcards of a job: they name its model, measure, part and so on.
Names = Mapping[str, str]
# Parameters of a job, as plain values: when they change, the job runs again.
Values = dict[str, Any]
# Paths, or lists of paths, by name. In a notebook, an input may be an object in memory instead.
Files = Mapping[str, Any]


@dataclass(frozen=True)
class Network:
    """The cost of one image in a network.

    `operations` is the number of multiply-adds. Sizes are in bytes: `activations` of all that the
    network computes, `peak` of the most that it needs at once, and `weights` of its weights.
    `values` is the number of values in its latents at all cut points, `sides` the sum of the longer
    sides of maps there.
    """

    operations: int
    activations: int
    peak: int
    weights: int
    cut_points: int
    values: int
    sides: int


@dataclass(frozen=True)
class Request:
    """A job of a study, and what is known about the job.

    `images` is the number of its images, `loaded` the size in bytes of the files that it loads.
    """

    study: Study
    names: Names
    network: Network | None = None
    images: int | None = None
    loaded: int = 0

    @property
    def dataset(self) -> "Dataset":
        """The data set from which the job takes its images."""
        if "model" in self.names:
            return self.study.dataset_of(self.names["model"])
        return self.study.data[self.names["dataset"]]


def model_of(study: Study, names: Names) -> str | None:
    """Return the model that a job is about, for a build-up its baseline; None if there is none.

    Of a pair of models it is the first.
    """
    if "buildup" in names:
        return study.buildups[names["buildup"]].baseline
    if "video" in names:
        return study.videos[names["video"]].model
    return by_prefix(names["model"])[PREFIXES[0]] if "model" in names else None


@dataclass(frozen=True)
class Takes:
    """What a job costs, apart from its start.

    `torch` tells whether the job imports torch. `work` returns the passes of images through a
    network; the images are of `split` or, if it is None, of the split that the study measures.
    `seconds` returns the time for all other work, `writes` the number of bytes in large outputs.
    `loads` names the inputs that the job holds in memory. `builds` tells that there is no block
    table yet, so that the network's cost has to be counted. `beside` is the memory of a helper
    process in megabytes.
    """

    torch: bool = False
    work: Callable[[Request], Work | None] | None = None
    seconds: Callable[[Request], float] | None = None
    writes: Callable[[Request], int | None] | None = None
    split: str | None = None
    loads: tuple[str, ...] = ()
    builds: bool = False
    beside: int = 0


@dataclass(frozen=True)
class Job:
    """A kind of work: `run` reads inputs and writes outputs, given by their paths.

    `values` returns the parameters that the result depends on; the key `modules` lists what `run`
    imports by computed names. `batches` is the setting for the number of images in memory at once,
    of a job that runs a network on one batch after the other.
    """

    run: "Callable[[Files, Files, Values, Resources], None]"
    values: Callable[[Study, Names], Values] = lambda study, names: {}
    takes: Takes | Callable[[Study, Names], Takes] = Takes()
    batches: str | Callable[[Names, Values], str | None] | None = None

    def batch_setting(self, names: Names, values: Values) -> str | None:
        """Return the setting for the number of images in memory at once, if there is one."""
        return self.batches(names, values) if callable(self.batches) else self.batches

    def takes_of(self, request: Request) -> Takes:
        return self.takes(request.study, request.names) if callable(self.takes) else self.takes


@dataclass(frozen=True)
class Resources:
    """What a job is given that does not affect its result.

    `label` names the job's subject in messages; `lock` is the path of the study's lock file.
    """

    threads: int = 1
    label: str = ""
    lock: str = ""
    say: Callable[[str], None] = print
    # Called with the number of images in each batch that passes through a network.
    count: Callable[[int], object] = lambda images: None
    warn: Callable[[str], None] = lambda warning: print(f"warning: {warning}")

    def say_of_it(self, text: str) -> None:
        """Print a message that begins with the label, since other jobs print at the same time."""
        self.say(f"{self.label}: {text}" if self.label else text)


# Where each job is defined. Names are looked up here, so that a job imports only its own module.
JOBS = {
    "augment_images": "jobs.training:AUGMENT_IMAGES",
    "build_split": "jobs.data:BUILD_SPLIT",
    "bundle_weights": "jobs.training:BUNDLE_WEIGHTS",
    "convert_checkpoint": "jobs.networks:CONVERT_CHECKPOINT",
    "corrupt_images": "jobs.data:CORRUPT_IMAGES",
    "count_claims": "jobs.claims:COUNT_CLAIMS",
    "decide_step": "jobs.buildups:DECIDE_STEP",
    "draw_blocks": "jobs.figures:DRAW_BLOCKS",
    "draw_buildup": "jobs.buildups:DRAW_BUILDUP",
    "draw_figure": "jobs.figures:DRAW_FIGURE",
    "draw_network": "jobs.figures:DRAW_NETWORK",
    "draw_overview": "jobs.figures:DRAW_OVERVIEW",
    "draw_video": "jobs.videos:DRAW_VIDEO",
    "export_figure": "jobs.figures:EXPORT_FIGURE",
    "export_latents": "jobs.latents:EXPORT_LATENTS",
    "export_table": "jobs.tables:EXPORT_TABLE",
    "extract_latents": "jobs.latents:EXTRACT_LATENTS",
    "fetch_archive": "jobs.data:FETCH_ARCHIVE",
    "fetch_checkpoint": "jobs.networks:FETCH_CHECKPOINT",
    "fetch_file": "jobs.data:FETCH_FILE",
    "measure": "jobs.measures:MEASURE",
    "measure_bundled": "jobs.buildups:MEASURE_BUNDLED",
    "measure_pass": "jobs.measures:MEASURE_PASS",
    "measure_step": "jobs.buildups:MEASURE_STEP",
    "merge": "jobs.measures:MERGE",
    "predict": "jobs.predictions:PREDICT",
    "record_run": "jobs.provenance:RECORD_RUN",
    "show_curves": "jobs.curves:SHOW_CURVES",
    "tabulate": "jobs.tables:TABULATE",
    "tabulate_buildup": "jobs.buildups:TABULATE_BUILDUP",
    "take_snapshot": "jobs.training:TAKE_SNAPSHOT",
    "train_model": "jobs.training:TRAIN_MODEL",
}


def find_job(name: str) -> Job:
    job: Job = resolve_name(f"vitscope.{JOBS[name]}")
    return job
