"""A copy of the workflow in a folder of its own, small studies, and the real `snakemake`."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[2]
PARTS = ("config", "envs", "profiles", "report", "resources", "rules", "scripts", "vitscope")
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


ALL_MADE = ("all", "figures/tiny/fig9.pdf", "results/sharded/feature_variance/vit.parquet")
TINY = ("figures/tiny/fig9.pdf", "results/tiny/tables/claims.parquet", "results/tiny/run.yaml")


@dataclass(frozen=True)
class Workflow:
    """A copy of the workflow, and where further studies lie."""

    root: Path
    studies: Path

    def start(
        self,
        *arguments: str,
        default: str = "mini",
        extra: dict[str, str] | None = None,
        **options: Any,
    ) -> subprocess.Popen:
        """Start `snakemake` as a user would, with the studies of these tests."""
        config = ["--config", f"studies_dir={self.studies}", f"study={default}"]
        kept = {key: os.environ[key] for key in os.environ if not key.startswith("SNAKEMAKE")}
        # Before everything else: a vitscope that is installed must not stand in for the copy.
        environment = kept | {"PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}
        environment |= extra or {}
        return subprocess.Popen(
            [SNAKEMAKE, *arguments, *config],
            cwd=self.root,
            env=environment,
            text=True,
            stderr=subprocess.STDOUT,
            **options,
        )

    def run(self, *arguments: str, default: str = "mini") -> tuple[int, str]:
        """Run `snakemake` to its end; return its exit code and all that it printed."""
        process = self.start(*arguments, default=default, stdout=subprocess.PIPE)
        output, _ = process.communicate(timeout=3600)
        return process.returncode, output

    def make(self, *arguments: str, default: str = "mini") -> str:
        """Run `snakemake`, which must succeed; return what it printed."""
        code, output = self.run(*arguments, default=default)
        assert code == 0, output
        return output

    def plan(self, *targets: str, default: str = "mini") -> dict[str, int]:
        """Return how many jobs of each rule would run."""
        output = self.make("-n", *targets, default=default)
        if "Nothing to be done" in output:
            return {}
        _, _, jobs = output.partition("Job stats:")
        counts = {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", jobs, re.MULTILINE)}
        assert counts.pop("total") == sum(counts.values())
        return counts

    def digests(self, *folders: str) -> dict[str, str]:
        """Return the digest of every file below some folders, hidden ones too."""
        files = [file for folder in folders for file in (self.root / folder).rglob("*")]
        return {
            str(file.relative_to(self.root)): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in files
            if file.is_file()
        }


def write_study(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Write the settings of these tests, changed, as a study."""
    settings = deepcopy(SETTINGS)
    change(settings)
    path.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")


@contextmanager
def edited(path: Path, edit: Callable[[str], str]) -> Iterator[None]:
    """Change the text of a file for a while."""
    before = path.read_text(encoding="utf-8")
    after = edit(before)
    assert after != before
    path.write_text(after, encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(before, encoding="utf-8")


def copy_workflow(root: Path, studies: Path) -> Workflow:
    """Copy the workflow, without what a run makes."""
    root.mkdir()
    shutil.copy(REPOSITORY / "Snakefile", root)
    for part in PARTS:
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / part, root / part, ignore=ignore)
    return Workflow(root, studies)
