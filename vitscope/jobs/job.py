"""What a job is: what its result depends on, what it takes, and its work.

Modules beside this file are read with the rules: they import what is heavy where they need it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitscope.measures.measure import Work

if TYPE_CHECKING:
    from vitscope.settings.keys import Dataset
    from vitscope.settings.study import Study as Study
else:
    # A job that runs reads and checks no study.
    Study = Any

# The wildcards of a job: they name its model, measure, part and so on.
Names = Mapping[str, str]
# Plain values that a job's result depends on: when they change, the job runs again.
Values = dict[str, Any]
# Paths, or lists of paths, by name. In a notebook, an input may be the object in place of a path.
Files = Mapping[str, Any]


@dataclass(frozen=True)
class Network:
    """The cost of one image in a network: multiply-adds, and bytes of what it computes.

    `peak` is the most that it needs at once, `values` the count of numbers in its latents.
    """

    operations: int
    activations: int
    peak: int
    weights: int
    cut_points: int
    values: int


@dataclass(frozen=True)
class Request:
    """A job of a study and what is known about it: its network, its images, and what it loads."""

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
    """Return the model that a job is about: for a build-up, its baseline."""
    if "buildup" in names:
        return study.buildups[names["buildup"]].baseline
    return study.videos[names["video"]].model if "video" in names else names.get("model")


@dataclass(frozen=True)
class Takes:
    """What a job costs, apart from starting it.

    `work` counts passes of images, which are of `split`, else of the one measured; `seconds` is the
    time for the rest, `writes` the bytes of large files, `loads` inputs held in memory; `builds`
    says to count the cost of a network that no block table states.
    """

    torch: bool = False
    work: Callable[[Request], Work | None] | None = None
    seconds: Callable[[Request], float] | None = None
    writes: Callable[[Request], int | None] | None = None
    split: str | None = None
    loads: tuple[str, ...] = ()
    builds: bool = False
    # Megabytes of a helper process.
    beside: int = 0


@dataclass(frozen=True)
class Job:
    """A kind of work: `run` does it, and reads and writes files by their paths.

    `modules` among the `values` are those that it imports by computed names; `batches` is the
    setting that says how many images are in memory at once.
    """

    run: "Callable[[Files, Files, Values, Resources], None]"
    values: Callable[[Study, Names], Values] = lambda study, names: {}
    takes: Takes | Callable[[Study, Names], Takes] = Takes()
    batches: str | Callable[[Names, Values], str | None] | None = None

    def batch_setting(self, names: Names, values: Values) -> str | None:
        """Return the setting that says how many images are in memory at once, if any."""
        return self.batches(names, values) if callable(self.batches) else self.batches

    def takes_of(self, request: Request) -> Takes:
        return self.takes(request.study, request.names) if callable(self.takes) else self.takes


@dataclass(frozen=True)
class Resources:
    """What a job is given that changes no result: `label` is its subject, `lock` a study's file."""

    threads: int = 1
    label: str = ""
    lock: str = ""
    say: Callable[[str], None] = print
    # Called with the number of images each time that a network is given some.
    count: Callable[[int], object] = lambda images: None
    warn: Callable[[str], None] = lambda warning: print(f"warning: {warning}")

    def say_of_it(self, text: str) -> None:
        """Print a message that begins with the subject, to tell it from jobs that run beside it."""
        self.say(f"{self.label}: {text}" if self.label else text)


@cache
def _modules() -> dict[str, str]:
    """Find the module of each kind of work without importing them all."""
    return {
        name.lower(): f"vitscope.jobs.{file.stem}"
        for file in sorted(Path(__file__).parent.glob("*.py"))
        for name in re.findall(r"(?m)^([A-Z][A-Z_]*) = Job\(", file.read_text(encoding="utf-8"))
    }


def names() -> tuple[str, ...]:
    return tuple(sorted(_modules()))


def find_job(name: str) -> Job:
    job: Job = getattr(import_module(_modules()[name]), name.upper())
    return job
