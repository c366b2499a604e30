"""A copy of the workflow in a folder of its own, small studies, and the real `snakemake`."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from compileall import compile_dir
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
import yaml

from tests.runs import warm
from vitscope.commands.workflow import start_jobs_warm
from vitscope.measures import registry
from vitscope.measures.folders import NO_PACKAGES
from vitscope.networks.building.networks import find_family
from vitscope.training.events import EVENTS
from vitscope.training.history import HISTORY

REPOSITORY = Path(__file__).parents[2]
PARTS = (
    *("config", "envs", "profiles", "report", "resources", "rules", "scripts"),
    *("snakemake_executor_plugin_prefork", "vitscope"),
)
SNAKEMAKE = Path(sys.executable).with_name("snakemake")

SETTINGS: dict[str, Any] = {
    "title": "tiny, networks that were never trained",
    "device": "cpu",
    "data": {
        "shapes32": {
            "source": {"kind": "shapes32"},
            "classes": 10,
            "image_size": 32,
            "mean": [0.5, 0.5, 0.5],
            "std": [0.25, 0.25, 0.25],
            "splits": {"train": {"images": 64}, "test": {"images": 16}},
        }
    },
    "models": {
        "resnet": {
            "label": "ResNet",
            "family": "resnet",
            "arch": {"block": "basic", "blocks": [1, 1, 1, 1], "width": 4},
            "data": "shapes32",
        },
        "vit": {
            "label": "ViT",
            "family": "vit",
            "arch": {"patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 2},
            "data": "shapes32",
        },
    },
    "analysis": {"images": 14, "shard_size": 14, "batch_size": 4},
    "training": {
        "epochs": 2,
        "batch_size": 16,
        "learning_rate": 0.002,
        "warmup_epochs": 1,
        "randaugment": None,
    },
    "figures": {
        "fig9": {
            "kind": "feature_variance",
            "models": ["resnet", "vit"],
            "published": {"file": "fig9.csv", "series": {"vit": "ViT"}},
        }
    },
}


# A study of some kinds of figures, and one of every kind. `make regenerate` makes every kind with
# every change, so that tests of runs need no more than one for every kind of file and every rule.
TINY, EVERYTHING = "tiny", "everything"
# A description that a page must show as it is.
MARKED_UP = "<script>alert(1)<img src=x onerror=alert(1)> & {{ 7 * 7 }}"
SOME_KINDS = ("feature_variance", "fourier", "spectrum", "cka", "landscape", "reliability")
# What tests look at of the first, and of a study that keeps no latents.
SHOWN = (
    f"figures/{TINY}/fig9.pdf",
    "figures/fig9.pdf",
    "results/whole/feature_variance/vit.parquet",
)
MADE = ("all", *SHOWN)
# One figure at least for every kind of file that lies between the data and a figure.
SOME = (
    *(f"figures/{name}.pdf" for name in (f"{TINY}/fig9", "reliability", "landscape")),
    f"results/{TINY}/tables/feature_variance.parquet",
)
MOMENTS = ("init", "warmup", "end")


def write_weights(folder: Path) -> dict[str, Path]:
    """Write checkpoints of others, a ResNet and a ViT at three moments, and a history."""
    folder.mkdir()
    paths = {}
    for seed, (name, moment) in enumerate([("resnet", "end"), *(("vit", m) for m in MOMENTS)]):
        torch.manual_seed(seed)
        model = SETTINGS["models"][name]
        network = find_family(model["family"]).build(model["arch"], 10, 32)
        key = name if moment == "end" else moment
        paths[key] = folder / f"{key}.pth.tar"
        torch.save({"state_dict": network.state_dict()}, paths[key])
    # How a training of three epochs might have gone.
    columns = {"loss": 2.0, "training_accuracy": 0.25, "test_loss": 1.5, "test_accuracy": 0.5}
    way = {"learning_rate": 0.001, "radius": None, "angle": None}
    paths["history"] = folder / "history.parquet"
    HISTORY.write(pd.DataFrame({"epoch": [1, 2, 3], **columns, **way}), paths["history"])
    return paths


def add_figures(settings: dict[str, Any], weights: dict[str, Path], kinds: Iterable[str]) -> None:
    """Add a figure of each kind, as small as can be; all that jobs share have two parts.

    And a video, where attention is.
    """
    settings["description"] = MARKED_UP
    for name, model in settings["models"].items():
        model["checkpoint"] = {"path": str(weights[name])}
    moments = {name: {"path": str(weights[name])} for name in MOMENTS if name != "end"}
    settings["models"]["vit"]["snapshots"] = moments
    settings["models"]["resnet"]["history"] = {"path": str(weights["history"])}
    settings["data"]["shapes32"]["splits"]["conflict"] = {"images": 16}
    settings["analysis"] |= {
        "shard_size": 8,
        "keep_latents": True,
        "cka": {"batch_size": 4},
        "robustness": {"images": 4, "corruptions": ["fog", "jpeg_compression"]},
        "augmented": {"images": 32},
        "fit": {"images": 16},
        "lesion": {"images": 8},
        "frequency_noise": {"images": 8},
        "occlusion": {"images": 8, "draws": 1},
        "skip_ratio": {"images": 8},
        "faithfulness": {"images": 3, "steps": 2},
        "landscape": {"points": 3, "rows_per_job": 2, "precision": "float32"},
        "curvature": {"batches": 1, "batch_size": 8},
        "interpolation": {"points": 2, "reset_images": 8},
        "plane": {"points": 2, "reset_images": 8},
        "hessian": {
            "sizes": [4, 8],
            "batches": 2,
            "batches_per_job": 1,
            "top": 1,
            "density_size": 8,
            "density_batches": 2,
        },
        "loss_terms": {"batches": 2, "batch_size": 8, "points": 3, "steps": 5},
    }
    settings["videos"] = {
        "walk": {"model": "vit", "source": {"generated": "shapes32"}, "frames": 3, "lossless": True}
    }
    if {"interpolation", "plane"} & {*(kinds := [*kinds])}:
        # They take networks of one shape.
        for moment in ("init", "warmup"):
            other = {"checkpoint": {"path": str(weights[moment])}}
            settings["models"][f"vit_{moment}"] = settings["models"]["vit"] | other
    for kind in kinds:
        # The figure of this kind is there already, with published points.
        name = "fig9" if kind == "feature_variance" else kind
        declared = registry.kinds()[kind]
        # The ViT has snapshots, the ResNet a history.
        model = "resnet" if kind == "training" else "vit"
        other = "vit_init" if kind == "interpolation" else "resnet"
        shown = {
            1: {"models": [model]},
            2: {"models": ["vit", "resnet"]} if declared.all_pairs else {"pairs": [["vit", other]]},
            3: {"triples": [["vit", "vit_init", "vit_warmup"]]},
        }[registry.declared(declared.measure).models]
        figure = settings["figures"].setdefault(name, {"kind": kind, **shown})
        if declared.snapshots:
            figure["snapshots"] = ["end"]


def write_studies(folder: Path, weights: dict[str, Path]) -> None:
    """Write `tiny` and `everything`, and `whole`: one model, in one shard, latents not kept."""

    def one_shard(settings: dict[str, Any]) -> None:
        del settings["models"]["resnet"]
        settings["models"]["vit"]["checkpoint"] = {"path": str(weights["vit"])}
        settings["figures"]["fig9"]["models"] = ["vit"]
        settings["analysis"]["keep_latents"] = False

    folder.mkdir()
    # The networks of these studies have no relative position bias, and nobody was shown the images.
    lacking = ("position_bias", "beside_people")
    every = [kind for kind in registry.kinds() if kind not in lacking]
    for name, kinds in ((TINY, SOME_KINDS), (EVERYTHING, every)):
        write_study(folder / f"{name}.yaml", partial(add_figures, weights=weights, kinds=kinds))
    write_study(folder / "whole.yaml", one_shard)


@dataclass(frozen=True)
class Workflow:
    """A copy of the workflow, where further studies lie, and where installed packages do."""

    root: Path
    studies: Path
    packages: Path | None = None

    def start(
        self,
        *arguments: str,
        default: str = "mini",
        extra: dict[str, str] | None = None,
        **options: Any,
    ) -> subprocess.Popen:
        """Start `snakemake` as `vitscope make` does, with the studies of these tests."""
        return subprocess.Popen(
            [SNAKEMAKE, *self._arguments(arguments, default)],
            cwd=self.root,
            env=self._environment() | (extra or {}),
            text=True,
            stderr=subprocess.STDOUT,
            **options,
        )

    def _arguments(self, arguments: tuple[str, ...], default: str) -> list[str]:
        config = ["--config", f"studies_dir={self.studies}", f"study={default}"]
        return [*arguments, *start_jobs_warm(arguments), *config]

    def _environment(self) -> dict[str, str]:
        kept = {key: os.environ[key] for key in os.environ if not key.startswith("SNAKEMAKE")}
        # Before everything else: a vitscope that is installed must not stand in for the copy.
        environment = kept | {"PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}
        return environment | (with_packages(self.packages, self.root) if self.packages else {})

    def run(self, *arguments: str, default: str = "mini") -> tuple[int, str]:
        """Run `snakemake` to its end; return its exit code and all that it printed."""
        line = self._arguments(arguments, default)
        return warm.run("snakemake", line, self.root, self._environment())

    def make(self, *arguments: str, default: str = "mini") -> str:
        code, output = self.run(*arguments, default=default)
        assert code == 0, output
        return output

    def plan(self, *targets: str, default: str = "mini") -> dict[str, int]:
        """Return how many jobs of each rule would run."""
        output = self.make("-n", *targets, default=default)
        if "Nothing to be done" in output:
            return {}
        _, _, jobs = output.partition("Job stats:")
        counts = {rule: int(n) for rule, n in re.findall(r"^([\w/]+) +(\d+)$", jobs, re.MULTILINE)}
        assert counts.pop("total") == sum(counts.values())
        return counts

    def digests(self, *folders: str) -> dict[str, str]:
        """Return the digest of every file below some folders, hidden ones too, but for events."""
        files = [file for folder in folders for file in (self.root / folder).rglob("*")]
        files = [file for file in files if file.parent.name != EVENTS]
        return {
            str(file.relative_to(self.root)): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in files
            if file.is_file()
        }


def with_packages(packages: Path, root: Path = REPOSITORY) -> dict[str, str]:
    """Return the variables with which packages in a folder are installed beside vitscope."""
    return {"PYTHONPATH": f"{root}{os.pathsep}{packages}", NO_PACKAGES: ""}


def write_study(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    settings = deepcopy(SETTINGS)
    change(settings)
    path.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")


@contextmanager
def edited(path: Path, edit: Callable[[str], str]) -> Iterator[None]:
    before = path.read_text(encoding="utf-8")
    after = edit(before)
    assert after != before
    path.write_text(after, encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(before, encoding="utf-8")


def in_work(function: str) -> Callable[[str], str]:
    """Return an edit that puts a line at the beginning of the work of a job, a function."""
    head = re.compile(rf"^def {function}\([^)]*\) -> None:\n", re.MULTILINE)
    return lambda text: head.sub(r"\g<0>    pass\n", text)


def with_study(folder: Path, name: str, settings: dict[str, Any]) -> Workflow:
    """Write a study below a folder, and copy the workflow beside it."""
    (folder / "studies").mkdir()
    text = yaml.safe_dump(settings, sort_keys=False)
    (folder / "studies" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return copy_workflow(folder / "copy", folder / "studies")


def copy_workflow(root: Path, studies: Path) -> Workflow:
    """Copy the workflow with what Python has compiled, without what a run makes."""
    root.mkdir()
    shutil.copy(REPOSITORY / "Snakefile", root)
    # A copy writes none, lest one that is edited twice in a second be read as it was at first.
    compile_dir(REPOSITORY / "vitscope", quiet=1)
    for part in PARTS:
        shutil.copytree(REPOSITORY / part, root / part)
    return Workflow(root, studies)
