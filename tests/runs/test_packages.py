import os
import shutil
import sys
import textwrap
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.helpers.processes import output_of, python
from tests.runs.copies import (
    REPOSITORY,
    SETTINGS,
    Workflow,
    edited,
    with_packages,
    with_study,
    write_study,
)
from tests.test_imports import HEAVY

EXAMPLE = REPOSITORY / "examples" / "sparsity"
FIGURE = "figures/colours/sparsity.pdf"
# A measure of feature maps with settings, a figure by depth, and a claim.
MEASURE = '''
from dataclasses import dataclass

from vitscope.files.tables import Table
from vitscope.measures.columns import mean_columns, per_image_columns
from vitscope.measures.measure import ByDepth, FigureKind, Measure, mean_over_images, own_settings
from vitscope.settings.section import setting


@dataclass(frozen=True)
class Settings:
    """The sizes of values."""

    power: float = setting(1.0, "Of what power the mean is taken.", minimum=1)


SIZES = Measure(
    needs="latents",
    measure="compute:measure_sizes",
    table=Table("sizes", mean_columns("size", "mean size of values")),
    part=Table("sizes_per_image", per_image_columns("size", "mean size of values")),
    figures={
        "size_by_depth": FigureKind(
            "show:plot_sizes", "claims:CLAIMS_SIZES", options=ByDepth
        ),
    },
    settings=Settings,
    arguments=own_settings,
    merge=mean_over_images("size"),
    seconds_per_gb=1.0,
)
'''
COMPUTE = """
import numpy as np

from my_measures.sizes.helper import power_mean
from vitscope.measures.per_image import part_of


def measure_sizes(given, power):
    values = [power_mean(given.latents.mapped(name), power) for name in given.latents.names]
    return part_of(values, given.first_image, "size")
"""
HELPER = """
import numpy as np


def power_mean(maps, power):
    return (np.abs(maps) ** power).mean(axis=(1, 2, 3)) ** (1 / power)
"""
FIGURE_BY_DEPTH = """
from vitscope.drawing.axes import begin_at_zero
from vitscope.drawing.charts import Chart, Rows, Steps

plot_sizes = Chart(Rows("Size", Steps("size"), scale=begin_at_zero))
"""
CLAIMS = """
from vitscope.claims.claim import Claim, Evidence, every_model, in_order
from vitscope.claims.statistics import grows_with_depth

CLAIMS_SIZES = Evidence(
    "sizes",
    (Claim("sizes_grow", "Values grow", "me", every_model, grows_with_depth("size", "size")),),
    in_order,
)
"""
FILES = {
    "measure.py": MEASURE,
    "compute.py": COMPUTE,
    "helper.py": HELPER,
    "show.py": FIGURE_BY_DEPTH,
    "claims.py": CLAIMS,
    "caption_size_by_depth.rst": "**Sizes of values.**\nMeans.\n",
}


def write_package(folder: Path, name: str, **files: str) -> None:
    """Write an installed package whose folder of measures is `my_measures.{name}`."""
    place = folder / "my_measures" / name
    place.mkdir(parents=True)
    for file, text in files.items():
        (place / file).write_text(text, encoding="utf-8")
    metadata = folder / f"my_{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: my-{name}\nVersion: 1.0\n")
    entry = f"[vitscope.measures]\n{name} = my_measures.{name}\n"
    (metadata / "entry_points.txt").write_text(entry)


def run(packages: Path, code: str) -> str:
    return python(textwrap.dedent(code), env=os.environ | with_packages(packages))


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where the example is installed from its source, and another package beside it."""
    folder = tmp_path_factory.mktemp("packages")
    shutil.copytree(EXAMPLE, folder / "source")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    how = ["--no-deps", "--no-build-isolation", "--target", folder / "site", folder / "source"]
    output_of(*pip, *how)
    write_package(folder / "site", "sizes", **FILES)
    return folder / "site"


@pytest.fixture(scope="module")
def workflow(
    packages: Path, weights: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Workflow:
    """A copy of the workflow in which figures of both packages were made."""
    vit = SETTINGS["models"]["vit"] | {"checkpoint": {"path": str(weights["vit"])}}
    own = {"sparsity": {"threshold": 0.2}, "sizes": {"power": 2.0}}
    kinds = {"sparsity": "sparsity", "sizes": "size_by_depth"}
    settings = SETTINGS | {
        "models": {"vit": vit},
        "analysis": SETTINGS["analysis"] | own,
        "figures": {name: {"kind": kind, "models": ["vit"]} for name, kind in kinds.items()},
    }
    made = with_study(tmp_path_factory.mktemp("workflow"), "colours", settings)
    made = replace(made, packages=packages)
    made.make("--cores", "1", "figures/colours/all")
    return made


def test_workflow_and_notebook_measure_and_draw_the_same(workflow: Workflow) -> None:
    assert (workflow.root / FIGURE).read_bytes().startswith(b"%PDF")
    printed = run(
        workflow.packages,
        f"""
        from pathlib import Path
        import pandas as pd
        from vitscope.studies.loading import load_study
        from tests.helpers.looking import Made

        study = load_study(Path({str(workflow.studies / "colours.yaml")!r}))
        made = Made(study, Path({str(workflow.root / "results")!r}))
        scope = made.looked_at("vit")
        for table in ("sparsity", "sizes"):
            ours, theirs = scope.table(table, resamples=True), made.table(table, "vit")
            pd.testing.assert_frame_equal(ours, theirs, rtol=0, atol=1e-6)
        assert len(scope.sparsity) == len(scope.sizes)
        assert {{"sparsity", "size_by_depth"}} <= {{*scope.kinds()}}
        scope.plot("sparsity")
        scope.plot("size_by_depth", together=True)
        print(*scope.claims("size_by_depth")["claim"])
        """,
    )
    assert printed.splitlines()[-1] == "Values grow"
    claims = (workflow.root / "results/colours/tables/claims.md").read_text(encoding="utf-8")
    assert "Values grow" in claims
    record = (workflow.root / "results/colours/run.yaml").read_text(encoding="utf-8")
    assert "vitscope-sparsity: 1.0.0" in record


def test_an_edit_of_a_package_reruns_what_it_measures_and_draws(workflow: Workflow) -> None:
    example, sizes = (
        workflow.packages / each for each in ("vitscope_sparsity", "my_measures/sizes")
    )
    plan = partial(workflow.plan, "figures/colours/all")
    with edited(example / "compute.py", lambda text: text.replace("sizes**2", "sizes**3")):
        jobs = plan()
        assert jobs["measure_latents"] == jobs["draw_figure"] == 1
    with edited(example / "show.py", lambda text: text.replace("small values", "low values")):
        jobs = plan()
        assert jobs["draw_figure"] == 1
        assert "measure_latents" not in jobs
    # A module that the package imports from another of its own.
    with edited(sizes / "helper.py", lambda text: text.replace("(1 / power)", "(2 / power)")):
        assert plan()["measure_latents"] == 1
    assert plan().keys() <= {"all_of_study"}


def test_declarations_of_packages_import_nothing_heavy(packages: Path) -> None:
    printed = run(
        packages,
        f"""
        import sys
        from vitscope.studies.loading import study_schema
        keys = study_schema()["properties"]["analysis"]["properties"]
        print(keys["sparsity"]["properties"]["threshold"]["default"], "power" in str(keys["sizes"]))
        print(*{{*sys.modules}} & {{*{HEAVY}}})
        """,
    )
    assert printed == "0.1 True\n\n"


READ = """
from pathlib import Path
from vitscope.errors import VitscopeError
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

for path in ({study!r}, BUNDLED_STUDIES / "mini.yaml"):
    try:
        print(load_study(Path(path)).name)
    except VitscopeError as error:
        print(error)
"""


def read_studies(tmp_path: Path, **files: str) -> list[str]:
    """Read a study with the kind `size_by_depth`, and the default study, with a package."""
    write_package(tmp_path / "site", "sizes", **(FILES | files))
    study = tmp_path / "study.yaml"
    figures = {"sizes": {"kind": "size_by_depth", "models": ["vit"]}}
    analysis = SETTINGS["analysis"] | {"sizes": {"power": 2.0}}
    write_study(study, lambda settings: settings.update(figures=figures, analysis=analysis))
    return run(tmp_path / "site", READ.format(study=str(study))).splitlines()


def test_a_package_that_cannot_be_imported_is_named_and_breaks_no_other_study(
    tmp_path: Path,
) -> None:
    ours, mini = read_studies(tmp_path, **{"measure.py": f"import nothing_there\n{MEASURE}"})
    assert "analysis.sizes: unknown key" in ours
    assert ours.endswith(
        " The measures of the package 'my_measures.sizes' are left out: ModuleNotFoundError: No "
        "module named 'nothing_there'."
    )
    assert mini == "mini"


@pytest.mark.parametrize(
    ("old", "new", "taken"),
    [
        ("sizes", "fourier", "fourier"),
        ("size_by_depth", "spectrum", "spectrum"),
        ("sizes", "blocks", "blocks"),
        ("sizes", "batch_size", "batch_size"),
    ],
)
def test_a_name_that_is_taken_is_refused(tmp_path: Path, old: str, new: str, taken: str) -> None:
    text = MEASURE.replace(old.upper(), new.upper()).replace(f'"{old}"', f'"{new}"')
    refused = (
        f"The package 'my_measures.sizes' has a measure or a kind of figure of the name "
        f"'{taken}', which is taken: uninstall it, or set VITSCOPE_NO_PACKAGES=1 to leave packages "
        f"out."
    )
    assert read_studies(tmp_path, **{"measure.py": text}) == [refused, refused]
