"""Memory and time against the number of images: CIFAR-100 through ViT-Ti's architecture."""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
import yaml  # noqa: E402

from bench.jobs import watched_jobs  # noqa: E402
from bench.rows import Row, as_table  # noqa: E402
from tests.helpers.golden import ARCHS, MEAN, STD, Golden  # noqa: E402
from tests.runs.copies import Workflow, copy_workflow  # noqa: E402

COUNTS = (256, 1024, 4096, 10_000)
MODEL, STUDY = "vit_ti", "scale"
SHARD_SIZE = 256
TABLES = ("feature_variance", "fourier", "cka")
# The most that the memory of a job may grow from the fewest to the most images.
GROWTH = 1.1


def study_of(images: int, parquet: Path, checkpoint: Path) -> dict[str, Any]:
    """Return the study that measures so many test images."""
    family, arch = ARCHS[MODEL]
    kinds = {"fig8": "fourier_depth", "fig9": "feature_variance", "fig10a": "cka"}
    return {
        "title": "scale",
        "device": "cpu",
        "data": {
            "cifar100": {
                "source": {"kind": "parquet", "path": str(parquet)},
                "classes": 100,
                "image_size": 32,
                "mean": MEAN.tolist(),
                "std": STD.tolist(),
                "splits": {"test": {"images": 10_000}},
            }
        },
        "models": {
            MODEL: {
                "family": family,
                "arch": arch,
                "data": "cifar100",
                "checkpoint": {"path": str(checkpoint)},
            }
        },
        "analysis": {
            "images": images,
            "seed": None,
            "shard_size": SHARD_SIZE,
            "keep_latents": False,
        },
        "figures": {name: {"kind": kind, "models": [MODEL]} for name, kind in kinds.items()},
    }


def run(workflow: Workflow, cores: int) -> dict[str, Any]:
    """Make the tables; return the time, and the records of the rules."""
    targets = [f"results/{STUDY}/{table}/{MODEL}.parquet" for table in TABLES]
    start = perf_counter()
    with watched_jobs(workflow.root) as seen:
        arguments = ("--cores", str(cores), *targets)
        process = workflow.start(*arguments, default=STUDY, stdout=subprocess.PIPE)
        output, _ = process.communicate()
        if process.returncode:
            sys.exit(output)
    kinds: dict[str, list[list[float]]] = defaultdict(list)
    for log, job in seen.items():
        kinds[kind_of(log)].append([job.processor, job.memory])
    return {"seconds": perf_counter() - start, "kinds": kinds}


def kind_of(log: str) -> str:
    """Return what the jobs have in common whose logs differ by the shard alone."""
    path = Path(log)
    return str(path.parent if path.stem.isdigit() else path).removeprefix(f"logs/{STUDY}/")


def measured(images: int, golden: Golden, folder: Path, cores: int) -> dict[str, Any]:
    """Measure so many images in a fresh copy of the workflow."""
    checkpoint = folder / "vit_ti.pth.tar"
    torch.save({"state_dict": golden.state_dict(MODEL)}, checkpoint)
    parquet = golden.shared / "data" / "cifar100" / "{split}.parquet"
    settings = study_of(images, parquet, checkpoint)
    (folder / f"{STUDY}.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return run(copy_workflow(folder / "vitscope", folder / f"{STUDY}.yaml"), cores)


def rows_of(found: dict[int, dict[str, Any]]) -> list[Row]:
    """Return the time of all images, and the memory and the time of each kind of job."""
    rows = []
    for images, result in sorted(found.items()):
        processor = sum(job[0] for jobs in result["kinds"].values() for job in jobs)
        what, detail = f"{images:,} images: processor time", f"{result['seconds']:.0f} s in all"
        rows.append(Row(f"{what} of an image", 1000 * processor / images, "ms", None, detail))
    fewest, most = (found[images]["kinds"] for images in (min(found), max(found)))
    for kind, jobs in sorted(most.items()):
        first, last = (max(job[1] for job in jobs) for jobs in (fewest[kind], jobs))
        what = f"{kind}: peak memory of a job, {max(found):,} images over {min(found):,}"
        detail = (
            f"{first:.0f} and {last:.0f} MiB; {len(jobs)} jobs, "
            f"{sum(job[0] for job in jobs):.0f} s of processor time"
        )
        rows.append(Row(what, last / first, "times", GROWTH, detail))
    return rows


def measure(counts: tuple[int, ...] = COUNTS, cores: int = 1) -> list[Row]:
    """Measure every number of images."""
    golden = Golden(ROOT / "shared" if (ROOT / "shared").exists() else ROOT.parent / "shared")
    found = {}
    for images in counts:
        with tempfile.TemporaryDirectory() as folder:
            found[images] = measured(images, golden, Path(folder), cores)
        print(json.dumps({images: found[images]}), flush=True)
    return rows_of(found)


def main() -> None:
    """Measure some numbers of images, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("images", nargs="*", type=int, default=COUNTS)
    parser.add_argument("--cores", type=int, default=1)
    arguments = parser.parse_args()
    print("\n".join(as_table(measure(tuple(arguments.images), arguments.cores))))


if __name__ == "__main__":
    main()
