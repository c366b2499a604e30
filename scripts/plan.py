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
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORDS = Path("benchmarks")
# In place of this folder, whose scripts have names of libraries.
sys.path[0] = str(ROOT)

from vitscope.errors import VitscopeError  # noqa: E402
from vitscope.planning import Job, as_text, by_rule, costs  # noqa: E402
from vitscope.studies import load_config  # noqa: E402
from vitscope.yamlfile import load_yaml  # noqa: E402


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


def jobs(*arguments: str) -> list[Job]:
    """Return the jobs that would run."""
    lines = csv.DictReader(snakemake("--detailed-summary", *arguments).splitlines(), delimiter="\t")
    pending = [line for line in lines if line["plan"] == "update pending"]
    found: list[Job] = []
    counted = counts(*arguments)
    for rule, of_rule in groupby(sorted(pending, key=rule_of), rule_of):
        paths = [Path(line["output_file"]) for line in of_rule]
        # A job has as many lines as outputs, one after another.
        each = len(paths) // counted[rule]
        for first in range(0, len(paths), each):
            outputs = paths[first : first + each]
            found.append(Job(rule, tuple(Path(*path.parts[1:]) for path in outputs)))
    return found


def rule_of(line: dict[str, str]) -> str:
    """Return the rule of a line of the summary."""
    return line["rule"]


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
    settings = [f"{key}={value}" for key, value in changed.items()]
    options = [*arguments.targets, *(["--config", *settings] if settings else [])]
    planned: dict[str, list[Job]] = {}
    for job in jobs(*options):
        # Figures of the default study, and targets of all studies, lie in no folder of its name.
        named = job.outputs[0].parts[:1]
        planned.setdefault(named[0] if named and named[0] in studies else default, []).append(job)
    if not planned:
        print("Nothing to be done.")
    # Jobs have one thread each; libraries read this when they are imported.
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    most_gb = config.get("max_latents_gb")
    for name, of_study in planned.items():
        print(as_text(studies[name], by_rule(costs(studies[name], of_study, RECORDS)), most_gb))


if __name__ == "__main__":
    try:
        main()
    except VitscopeError as error:
        sys.exit(f"vitscope: {error}")
