from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from tests.runs.copies import EVERYTHING, SOME_KINDS, TINY, Workflow, copy_workflow
from vitscope.files.strict_yaml import load_yaml
from vitscope.files.tables import read_table_part
from vitscope.jobs.tables import find_table

OF_EVERYTHING = (
    f"figures/{EVERYTHING}/fig9.pdf",
    *(f"results/{EVERYTHING}/{file}" for file in ("run.yaml", "introduction.html")),
)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, studies: Path) -> Workflow:
    """A second copy, in which only `everything` was made, on one core, beside the default study."""
    workflow = copy_workflow(tmp_path_factory.mktemp("alone") / "copy", studies)
    workflow.make("--cores", "1", *OF_EVERYTHING)
    return workflow


@pytest.mark.nightly
def test_two_clean_runs_on_one_core_and_on_two_give_the_same_bytes(alone, every_kind):
    made = alone.digests(f"results/{EVERYTHING}")
    assert {Path(path).suffix for path in made} >= {".parquet", ".safetensors", ".yaml"}
    assert made == every_kind.digests(f"results/{EVERYTHING}")
    figures = alone.digests(f"figures/{EVERYTHING}")
    assert {Path(path).suffix for path in figures} == {".pdf", ".svg", ".png"}
    of_default = every_kind.digests("figures")
    for path, digest in figures.items():
        # Pages of a study have its folder before them in the default study, too.
        short = path.replace(f"{EVERYTHING}/", "")
        assert of_default[short if short in of_default else path] == digest


@pytest.mark.nightly
def test_as_many_threads_give_the_same_bytes_and_others_the_same_numbers(made, tmp_path):
    target = "results/whole/feature_variance/vit.parquet"
    threads = ("--set-threads", "measure_pass=2")
    digests = []
    for name in ("first", "second"):
        workflow = copy_workflow(tmp_path / name, made.studies)
        workflow.make("--cores", "2", target, *threads)
        digests.append(workflow.digests("results"))
    assert digests[0] == digests[1]
    found, expected = (
        find_table("feature_variance").read(w.root / target) for w in (workflow, made)
    )
    largest = expected["variance"].max()
    np.testing.assert_allclose(found["variance"], expected["variance"], rtol=0, atol=1e-4 * largest)


@pytest.mark.nightly
def test_a_study_outside_the_repository_leaves_all_others_alone(alone):
    assert [path.name for path in (alone.root / "results").iterdir()] == [EVERYTHING]
    assert [path.name for path in (alone.root / "figures").iterdir()] == [EVERYTHING]
    record = (alone.root / f"results/{EVERYTHING}/run.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(record)["study"]["name"] == EVERYTHING


@pytest.mark.parametrize(
    ("run", "study"),
    [("made", TINY), pytest.param("every_kind", EVERYTHING, marks=pytest.mark.nightly)],
)
def test_everything_of_a_study_is_there(request, run, study):
    workflow = request.getfixturevalue(run)
    settings = load_yaml(workflow.studies / f"{study}.yaml")
    for figure in settings["figures"]:
        assert (workflow.root / f"figures/{figure}.pdf").read_bytes().startswith(b"%PDF")
    for video in settings["videos"]:
        with Image.open(workflow.root / f"figures/{video}.webp") as image:
            assert image.n_frames == settings["videos"][video]["frames"]
    tables = list((workflow.root / "results" / study / "tables").glob("*.parquet"))
    assert len(tables) > len(SOME_KINDS)
    for file in tables:
        is_buildup = file.stem.startswith("buildup_")
        table = find_table("buildup" if is_buildup else file.stem).read(file)
        # Two blocks are too few to be scored against published ones.
        assert table.empty == (file.stem == "agreement"), file


def test_the_figure_of_the_default_study_is_the_same_under_its_short_name(made):
    short = made.digests("figures")
    for suffix in ("pdf", "svg", "png"):
        assert short[f"figures/fig9.{suffix}"] == short[f"figures/{TINY}/fig9.{suffix}"]


def test_one_shard_and_two_give_the_same_values(made):
    results = made.root / "results"
    table = find_table("variance_per_image")
    shards = [f"results/{TINY}/feature_variance/vit/{part}.parquet" for part in (0, 1)]
    made.make(*shards, default=TINY)
    one, _ = read_table_part(table, results / "whole/passes/vit/0.parquet", "feature_variance")
    by_image = one.set_index(["image", "index"])["variance"]
    found = [
        table.read(made.root / shard).set_index(["image", "index"])["variance"] for shard in shards
    ]
    for values in found:
        np.testing.assert_allclose(values, by_image.loc[values.index], rtol=1e-6)
    assert sum(map(len, found)) == len(one)

    merged = [
        find_table("feature_variance").read(results / study / "feature_variance/vit.parquet")
        for study in (TINY, "whole")
    ]
    values = ["variance", "ci_low", "ci_high"]
    for column in values:
        np.testing.assert_allclose(*(table[column] for table in merged), rtol=1e-6)
    assert merged[0].drop(columns=values).equals(merged[1].drop(columns=values))


def test_latents_live_on_only_where_the_study_keeps_them(made):
    latents = {path.name for path in made.root.glob("results/*/latents/*/*")}
    assert latents == {"0.safetensors", "1.safetensors"}
    assert not (made.root / "results/whole/latents").exists()
