"""Tell what the figures of a study will cost, before anything runs.

    python scripts/plan.py --study paper
    python scripts/plan.py figures/fig9.pdf

Which jobs would run is what Snakemake says: what is made already is not in the plan.
"""

import argparse
import csv
import os
import re
import subprocess
import sys
from functools import partial
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Where results, figures and records lie if the settings do not say.
FOLDERS = {name: name for name in ("results", "figures", "benchmarks")}
DRAWING = ("draw_figure", "draw_default_figure")
if __name__ == "__main__":
    # In place of this folder, whose scripts have names of libraries.
    sys.path[0] = str(ROOT)

from vitscope.errors import VitscopeError  # noqa: E402
from vitscope.files.strict_yaml import load_yaml  # noqa: E402
from vitscope.settings.loading import load_config  # noqa: E402
from vitscope.workflow.plan import Planned, as_text, by_rule, costs_of  # noqa: E402


def snakemake(*arguments: str) -> str:
    """Return what Snakemake prints to its standard output, or end as it ends."""
    command = [str(Path(sys.executable).with_name("snakemake")), "-s", str(ROOT / "Snakefile")]
    command += ["--workflow-profile", str(ROOT / "profiles" / "default"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr.strip().splitlines()[-1])
    return done.stdout


def counts(*arguments: str) -> dict[str, int]:
    """Return how many jobs of each rule a dry run counts."""
    _, _, jobs = snakemake("-n", *arguments).partition("Job stats:")
    found = {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", jobs, re.MULTILINE)}
    found.pop("total", None)
    return found


def jobs(folders: dict[str, str], *arguments: str) -> list[Planned]:
    """Return the jobs that would run, by what they write to these folders."""
    lines = csv.DictReader(snakemake("--detailed-summary", *arguments).splitlines(), delimiter="\t")
    pending = [line for line in lines if line["plan"] == "update pending"]
    found: list[Planned] = []
    counted = counts(*arguments)
    for rule, of_rule in groupby(sorted(pending, key=rule_of), rule_of):
        paths = [Path(line["output_file"]) for line in of_rule]
        # A job has as many lines as outputs, one after another.
        each = len(paths) // counted[rule]
        for first in range(0, len(paths), each):
            outputs = paths[first : first + each]
            folder = folders["figures" if rule in DRAWING else "results"]
            found.append(Planned(rule, tuple(path.relative_to(folder) for path in outputs)))
    return found


def rule_of(line: dict[str, str]) -> str:
    """Return the rule of a line of the summary."""
    return line["rule"]


def records_of(job: Planned, default: str) -> list[Path]:
    """Return where the record of a job may be, below the folder of records."""
    places = [output.with_suffix(".tsv") for output in job.outputs]
    if job.rule == "draw_default_figure":
        return [Path(default, "figures", f"default_{places[0].name}")]
    if job.rule == "draw_figure":
        return [places[0].parent / "figures" / places[0].name]
    if job.rule == "train_model":
        return [places[0].parent.with_suffix(".tsv")]
    return places


def earlier(records: Path, default: str, job: Planned) -> float | None:
    """Return the seconds of a job in an earlier run, or the mean of its siblings."""
    places = [records / place for place in records_of(job, default)]
    found = [place for place in places if place.is_file()]
    siblings = [file for place in places for file in sorted(place.parent.glob("*.tsv"))]
    seconds = [seconds_of(file) for file in found or siblings]
    return sum(seconds) / len(seconds) if seconds else None


def seconds_of(record: Path) -> float:
    """Return the seconds of a record."""
    with record.open(encoding="utf-8", newline="") as lines:
        return float(next(csv.DictReader(lines, delimiter="\t"))["s"])


def main() -> None:
    """Print the plan of every study that has jobs to run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", help="files to make; if none, all of the study")
    parser.add_argument("--study", help="the default study of this plan")
    parser.add_argument("--studies-dir", help="where further studies lie")
    arguments = parser.parse_args()
    changed = {"study": arguments.study, "studies_dir": arguments.studies_dir}
    changed = {key: value for key, value in changed.items() if value is not None}
    config = load_yaml(ROOT / "config" / "config.yaml") | changed
    default, studies = load_config(config, "config/config.yaml")
    folders = FOLDERS | config.get("pathvars", {})
    settings = [f"{key}={value}" for key, value in changed.items()]
    options = [*arguments.targets, *(["--config", *settings] if settings else [])]
    planned: dict[str, list[Planned]] = {}
    for job in jobs(folders, *options):
        # Figures of the default study, and targets of all studies, lie in no folder of its name.
        named = job.outputs[0].parts[:1]
        planned.setdefault(named[0] if named and named[0] in studies else default, []).append(job)
    if not planned:
        print("Nothing to be done.")
    # Jobs have one thread each; libraries read this when they are imported.
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    most_gb = config.get("max_latents_gb")
    known = partial(earlier, Path(folders["benchmarks"]), default)
    for name, of_study in planned.items():
        print(as_text(studies[name], by_rule(costs_of(studies[name], of_study, known)), most_gb))


if __name__ == "__main__":
    try:
        main()
    except VitscopeError as error:
        sys.exit(f"vitscope: {error}")
