"""The workflow as a module of another one, and by the Snakefile that the catalogue looks for."""

import os
import re
from pathlib import Path
from subprocess import STDOUT

import pytest
import torch
import yaml

from tests.helpers.processes import output_of
from tests.runs.copies import REPOSITORY, SETTINGS, SNAKEMAKE, write_study
from vitscope.networks.building.networks import find_family

pytestmark = pytest.mark.others

OUTER = """
configfile: "outer.yaml"

rule summary:
    input:
        "results/own/tables/feature_variance.parquet",
        "figures/own/fig9.pdf",
    output:
        "summary.txt",
    shell:
        "printf '%s\\\\n' {{input}} > {{output}}"

module vitscope:
    snakefile: "{snakefile}"
    config: config["vitscope"]

use rule * from vitscope exclude all as vs_*
"""


def snakemake(folder: Path, *arguments: str) -> str:
    """Run Snakemake in a folder, which must succeed; return what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = (SNAKEMAKE, "--cores", "2", *arguments)
    return output_of(*command, cwd=folder, env=environment, stderr=STDOUT)


@pytest.mark.parametrize("snakefile", ["Snakefile", "workflow/Snakefile"])
def test_another_workflow_makes_figures_of_the_default_study(
    tmp_path: Path, snakefile: str
) -> None:
    outer = OUTER.format(snakefile=REPOSITORY / snakefile).replace('config["vitscope"]', "config")
    (tmp_path / "Snakefile").write_text(outer.replace('configfile: "outer.yaml"', ""))
    assert "vs_draw_figure" in snakemake(tmp_path, "-n", "figures/fig9.pdf")


def test_another_workflow_makes_its_own_study(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(OUTER.format(snakefile=REPOSITORY / "Snakefile"))
    # Keys that are no settings of vitscope, and one that is.
    settings = {"samples": ["a", "b"], "vitscope": {"studies_dir": "own.yaml"}}
    (tmp_path / "outer.yaml").write_text(yaml.safe_dump(settings))
    torch.manual_seed(0)
    network = find_family("vit").build(SETTINGS["models"]["vit"]["arch"], 10, 32)
    torch.save({"state_dict": network.state_dict()}, tmp_path / "vit.pth.tar")

    def of_one_model(study: dict) -> None:
        del study["models"]["resnet"]
        study["models"]["vit"]["checkpoint"] = {"path": "vit.pth.tar"}
        study["figures"]["fig9"]["models"] = ["vit"]

    write_study(tmp_path / "own.yaml", of_one_model)
    snakemake(tmp_path)
    made = (tmp_path / "summary.txt").read_text().split()
    assert made == ["results/own/tables/feature_variance.parquet", "figures/own/fig9.pdf"]
    assert "Nothing to be done" in snakemake(tmp_path, "-n", "figures/own/fig9.pdf")


def test_the_snakefile_of_the_catalogue_makes_the_same(tmp_path: Path) -> None:
    own, catalogued = (
        snakemake(tmp_path, "-s", str(REPOSITORY / name), "-n", *target)
        for name, target in (("Snakefile", ["all"]), ("workflow/Snakefile", []))
    )
    assert jobs_of(catalogued) | {"all": "1"} == jobs_of(own) | {"everything": "1"}


def jobs_of(planned: str) -> dict[str, str]:
    found = dict(re.findall(r"^([a-z_]+) +(\d+)$", planned, re.MULTILINE))
    del found["total"]
    return found
