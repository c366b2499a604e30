import re
import shlex
from pathlib import Path

import yaml

from tests.helpers.processes import python

ROOT = Path(__file__).parents[1]
RECIPE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
CONTAINERS = """
import sys
from snakemake.api import ConfigSettings, OutputSettings, ResourceSettings, SnakemakeApi
with SnakemakeApi(OutputSettings()) as api:
    settings = ConfigSettings(config={"container": "some.sif"} if sys.argv[1] == "set" else {})
    flow = api.workflow(ResourceSettings(), config_settings=settings, snakefile="Snakefile")
    flow.list_rules(only_targets=False)
    print("containers:", {rule.container_img for rule in flow._workflow.rules})
"""


def containers(setting: str) -> str:
    return python(CONTAINERS, setting, cwd=ROOT).splitlines()[-1]


def test_one_setting_gives_all_rules_a_container() -> None:
    assert containers("unset") == "containers: {None}"
    assert containers("set") == "containers: {'some.sif'}"


def test_the_recipe_installs_the_pinned_versions_and_what_a_job_needs() -> None:
    assert "-c envs/constraints.txt -e '.[workflow,slurm]'" in RECIPE
    # Else a job would take it from the image, where the rules are those of a clone.
    assert RECIPE.index("uninstall --yes vitscope") > RECIPE.index("constraints.txt -e")
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").replace("**/", "").split()
    assert {*(ROOT / ".gitignore").read_text(encoding="utf-8").split(), ".git/"} <= {*ignored}
    needed = {"Snakefile", "rules", "scripts", "config", "vitscope", "report", "resources"}
    assert not needed & {entry.strip("/") for entry in ignored}


def test_every_change_makes_a_figure_with_the_container_that_it_builds() -> None:
    text = (ROOT / ".github/workflows/container.yml").read_text(encoding="utf-8")
    runs = [step.get("run", "") for step in yaml.safe_load(text)["jobs"]["figure"]["steps"]]
    build, make, *_, compare = map(shlex.split, filter(None, runs))
    name = build[build.index("--tag") + 1]
    *_, program, option, snakefile, figure = make
    assert make[make.index(name) + 1 :] == [program, option, snakefile, figure]
    (folder,) = re.findall(r"^WORKDIR (.+)\n^COPY \. \.$", RECIPE, re.MULTILINE)
    assert (program, option) == ("snakemake", "-s")
    assert (ROOT / Path(snakefile).relative_to(folder)).is_file()
    # The folder in which it works is `made` outside.
    assert f"$PWD/made:{make[make.index('--workdir') + 1]}" in make
    assert compare == ["cmp", figure, f"made/{figure}"]
