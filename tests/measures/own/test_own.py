from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.stats import kurtosis

from tests.helpers.latents import written
from tests.helpers.refusals import refusal
from tests.helpers.studies import mini_with
from vitscope.claims.points import Points
from vitscope.drawing.figure import Member
from vitscope.errors import VitscopeError
from vitscope.jobs.describing import MeasuredOn
from vitscope.jobs.job import Resources, find_job
from vitscope.measures import registry
from vitscope.measures.captions import caption_of, title_of
from vitscope.measures.given import OnLatents, Parts
from vitscope.measures.measure import Measure
from vitscope.measures.own import compute, show
from vitscope.measures.own.declaring import declare_own
from vitscope.measures.per_image import merge_means
from vitscope.measures.registry import Registry
from vitscope.networks.finding.cut_points import BLOCKS, CUT_POINT
from vitscope.package_data import STYLE
from vitscope.studies.loading import load_study

LEAST = '''"""Kurtosis of feature maps.

Of all values of a map.
"""
from scipy.stats import kurtosis


def measure(maps, fisher=True):
    return kurtosis(maps.reshape(len(maps), -1), axis=1, fisher=fisher)
'''
MAPS = [
    np.random.default_rng(depth).gamma(2, 1, (7, 3, 4 - depth, 4 - depth)).astype(np.float32)
    for depth in range(3)
]
EXPECTED = [kurtosis(maps.reshape(7, -1), axis=1).mean() for maps in MAPS]


def declare(folder: Path, text: str, **keywords: Any) -> Measure:
    file = folder / "tails.py"
    file.write_text(text, encoding="utf-8")
    return declare_own("tails", {"file": "tails.py", "keywords": keywords}, folder, "here")


def arguments(own: Measure) -> dict[str, Any]:
    # What it depends on does not depend on the study.
    return own.arguments(None)  # type: ignore[arg-type]


def measure(own: Measure, folder: Path, images: slice = slice(None)) -> pd.DataFrame:
    latents = written(folder / f"latents{images.start}", [maps[images] for maps in MAPS])
    return compute.measure(OnLatents(latents, images.start or 0), **arguments(own))


def test_the_least_file_measures_what_scipy_does_however_images_are_cut(tmp_path: Path) -> None:
    own = declare(tmp_path, LEAST)
    halves = [measure(own, tmp_path, slice(0, 4)), measure(own, tmp_path, slice(4, 7))]
    assert set(halves[0].columns) == {*own.part_table.columns}
    points = pd.DataFrame(
        dict.fromkeys(CUT_POINT, 0) | {"index": range(3), "model": "m", "name": "n", "kind": "msa"}
    )
    table = merge_means(Parts("m", iter(halves), points), "value", 200, 0)
    np.testing.assert_allclose(table["value"], EXPECTED, rtol=1e-6)
    assert table["value"].between(table["ci_low"], table["ci_high"]).all()
    assert set(table.columns) == {*own.table.columns}
    own.table.write(table, tmp_path / "table")


def test_keywords_of_a_study_reach_the_function(tmp_path: Path) -> None:
    plain = measure(declare(tmp_path, LEAST), tmp_path)
    pearson = measure(declare(tmp_path, LEAST, fisher=False), tmp_path)
    np.testing.assert_allclose(pearson["value"], plain["value"] + 3, rtol=1e-6)


def test_an_edit_changes_what_parts_depend_on(tmp_path: Path) -> None:
    edited = LEAST.replace("axis=1", "axis=-1")
    before, after, again = (arguments(declare(tmp_path, text)) for text in (LEAST, edited, edited))
    assert before["code"] != after["code"]
    assert after == again


def test_its_docstring_is_the_caption(tmp_path: Path) -> None:
    own = declare(tmp_path, LEAST)
    known = Registry({"tails": own})
    kind = known.kinds()["tails"]
    assert kind.tables == ("tails",)
    assert title_of(kind) == "Kurtosis of feature maps"
    assert caption_of(kind) == r"**Kurtosis of feature maps.**" "\n\n" r"Of all values of a map\."
    assert known.names()[-1] == "tails"


GROWN = '''"""Mean and largest value."""
import pandas as pd
from matplotlib.figure import Figure

MEASURE = {"needs": "latents", "seconds_per_gb": 0.5}
TABLE = {"model": "string", "largest": ("float64", "largest of all")}


def measure(maps):
    return maps.max(axis=(1, 2, 3))


def merge(parts, resamples, seed):
    largest = max(table["value"].max() for table in parts.tables)
    return pd.DataFrame({"model": [parts.model], "largest": largest})


def plot(table, members):
    figure = Figure()
    figure.suptitle(f"{len(table)} of {len(members)}")
    return figure
'''


def test_a_file_may_say_how_parts_are_merged_and_drawn(tmp_path: Path) -> None:
    own = declare(tmp_path, GROWN)
    assert own.seconds_per_gb == 0.5
    assert own.merge.function == f"{compute.__name__}:merge"
    parts = Parts("m", iter([measure(own, tmp_path)]), pd.DataFrame())
    runs = {key: value for key, value in arguments(own).items() if key != "keywords"}
    table = compute.merge(parts, **runs, resamples=10, seed=0)
    assert table["largest"].item() == max(maps.max() for maps in MAPS)
    assert own.table.columns["largest"] == ("float64", "largest of all")
    kind = own.figures["tails"]
    drawn = show.plot(table, [Member("m", "M", "vit")], **kind.values)
    assert kind.draw == f"{show.__name__}:plot"
    assert isinstance(drawn, Figure)
    assert drawn.get_suptitle().strip() == "1 of 1"


CLAIMING = (
    LEAST
    + """

from vitscope.claims.claim import Claim, every_model
from vitscope.claims.statistics import Statistic, value_of

def grows(points):
    return value_of(points["value"][:, -1] - points["value"][:, 0])

CLAIMS = (
    Claim("grows", "It grows", "me", every_model, Statistic("difference", "Last - first.", grows)),
)
"""
)


def test_a_file_may_claim_something(tmp_path: Path) -> None:
    least = declare(tmp_path, LEAST)
    assert least.figures["tails"].claims is None
    own = declare(tmp_path, CLAIMING)
    measures = Registry({"tails": own})
    (evidence,) = measures.claims_of("tails").values()
    assert evidence.table == own.table.name
    points = {"model": "m", "index": [1, 0], "kind": ["msa", "stem"], "value": [3.0, 1.0]}
    rows = pd.DataFrame(points | {"stage": 0, "height": 2, "width": 2})
    (claim,) = evidence.claims
    resampled = rows.assign(value_resampled=[[3.5, 2.5, 3.0], [1.0, 0.5, 2.0]])
    found = claim.statistic.find(Points(evidence.measured(resampled, resampled)))
    assert found is not None
    assert found.values.tolist() == [2, 2.5, 2, 1]
    (tmp_path / "wrong").mkdir()
    wrong = declare(tmp_path / "wrong", CLAIMING + "\nCLAIMS = (1,)\n")
    with pytest.raises(VitscopeError, match=r"tails\.py: CLAIMS: found something else"):
        Registry({"tails": wrong}).claims_of("tails")


FILE = "tails.py"
MERGES = "def measure(maps): ...\ndef merge(parts): ...\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def measure(maps:\n", "here: {file}, line 1: "),
        ('MEASURE = {"needs": "loss"}\ndef measure(maps): ...\n', "line 1: MEASURE: found needs="),
        ('MEASURE = {"parts": 3}\ndef measure(maps): ...\n', "line 1: MEASURE: found 'parts', all"),
        ('MEASURE = {"needs": x}\ndef measure(maps): ...\n', "line 1: MEASURE: it is read without"),
        ('MEASURE = {"needs": "model"}\ndef measure(maps): ...\n', "line 1: MEASURE: without lat"),
        ('TABLE = {"a": "int32"}\ndef measure(maps): ...\n', "line 1: TABLE: add `merge(parts)`"),
        ("TABLE = 3\n" + MERGES, "line 1: TABLE: allowed: {{"),
        (
            'TABLE = {"model": "string"}\n' + MERGES,
            "here: {file} has a `TABLE` and no function `plot`",
        ),
    ],
)
def test_a_file_that_is_wrong_is_refused_before_it_runs(
    tmp_path: Path, text: str, said: str
) -> None:
    assert said.format(file=tmp_path / FILE) in refusal(declare, tmp_path, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "def mesure(maps): ...\n",
            "{file} has no function 'measure'; it has mesure. Did you mean 'mesure'?",
        ),
        (
            "\ndef measure(): ...\n",
            "{file}, line 2: measure is called with what it measures, k and takes nothing: "
            "too many positional arguments.",
        ),
        (
            "def measure(maps, kk): ...\n",
            "{file}, line 1: measure is called with what it measures, k and takes maps, kk: "
            "missing a required argument: 'kk'. Did you mean 'kk'?",
        ),
    ],
)
def test_a_call_that_does_not_fit_is_refused_where_the_file_runs(
    tmp_path: Path, text: str, said: str
) -> None:
    own = declare(tmp_path, text, k=3)
    expected = said.format(file=tmp_path / FILE)
    assert refusal(measure, own, tmp_path) == expected
    assert refusal(compute.check_call_of_measure, **arguments(own)) == expected


@pytest.mark.parametrize("name", ["cka", "fourier_depth", "latents", "passes", "style"])
def test_a_name_of_vitscope_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(VitscopeError, match=f"of the name '{name}': choose another name"):
        declare_own(name, {"file": FILE}, tmp_path, "here")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return maps.mean()", "line 1: measure returned values of the shape ()"),
        ("return maps[:2].mean(axis=(1, 2, 3))", "returned values of the shape (2,)"),
        ("return [{}] * len(maps)", "returned a list at the cut point"),
        ("return maps.sum((1, 2, 3)) / 0", "returned inf for image 0 at the cut point"),
        ("return maps[0, 0, 0, 9]", "line 2, in measure: IndexError: index 9 is out of bounds"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_what_a_function_does_wrong_is_said_with_its_line(
    tmp_path: Path, body: str, said: str
) -> None:
    own = declare(tmp_path, f"def measure(maps):\n    {body}\n")
    sentence = refusal(measure, own, tmp_path)
    assert sentence.startswith(f"{tmp_path / FILE}, line ")
    assert said in sentence


def test_a_map_of_one_position_may_have_no_value() -> None:
    values = compute.call_own_function(
        lambda maps: [np.nan] * 2, np.zeros((2, 5, 1, 1)), "head", 0, {}
    )
    assert np.isnan(values).all()


def study(folder: Path, kind: str = "tails") -> Path:
    (folder / "tails.py").write_text(LEAST, encoding="utf-8")
    figures = {"one": {"kind": kind, "models": ["vit", "resnet"]}}
    return mini_with(folder, figures=figures, measures={"tails": {"file": "tails.py"}})


def test_a_study_names_it_and_shows_it(tmp_path: Path) -> None:
    loaded = load_study(study(tmp_path))
    assert loaded.tables() == loaded.measures() == ["tails"]
    assert loaded.models_of("tails") == ["resnet", "vit"]
    measures = registry.of(loaded)
    own = measures.declared("tails")
    assert own.parts(loaded, "vit") == loaded.shards("vit")
    assert own.measuring(loaded, "vit", 0)["file"] == str(tmp_path / "tails.py")
    assert own.merging(loaded, "vit") == {"column": "value", "resamples": 2000, "seed": 0}
    assert own.merge.function == "vitscope.measures.per_image:merge_means"
    assert own.measure == f"{compute.__name__}:measure"
    assert "tails" not in registry.names()


def test_a_figure_of_an_unknown_kind_is_told_of_its_own_kinds(tmp_path: Path) -> None:
    with pytest.raises(VitscopeError, match="Did you mean 'tails'"):
        load_study(study(tmp_path, "tail"))


def test_jobs_measure_merge_and_draw_it(tmp_path: Path) -> None:
    loaded, about = load_study(study(tmp_path)), {"measure": "tails", "model": "vit"}

    def run(job: str, inputs: dict[str, Any], outputs: dict[str, Any], **names: str) -> None:
        work = find_job(job)
        work.run(inputs, outputs, work.values(loaded, about | names), Resources())

    part, table, drawn = tmp_path / "part", tmp_path / "vit.parquet", tmp_path / "tails.svg"
    latents = written(tmp_path / "maps", MAPS).path
    run("measure", {"latents": latents}, {"part": part}, part="0")
    blocks = pd.DataFrame(
        {key: [0] * 3 for key in BLOCKS.columns} | {"index": range(3), "norm": None}
    )
    named = blocks.assign(model="vit", name="n", kind="msa", depth=[0.0, 0.5, 1.0])
    BLOCKS.write(named, tmp_path / "blocks")
    run("merge", {"parts": [part], "blocks": tmp_path / "blocks"}, {"table": table})
    merged = registry.of(loaded).declared("tails").table.read(table)
    np.testing.assert_allclose(merged["value"], EXPECTED, rtol=1e-6)
    one = replace(loaded, figures={"one": replace(loaded.figures["one"], models=["vit"])})
    work = find_job("draw_figure")
    values = work.values(one, {"figure": "one"})
    inputs = {"tails": [table], "published": [], "style": STYLE}
    work.run(inputs, {"svg": drawn}, values, Resources())
    assert values["caption"].startswith("**Kurtosis of feature maps.**")
    assert "Normalized depth" in drawn.read_text(encoding="utf-8")
    # What stands above the panels is in the metadata, too, and from there in the caption.
    assert ">7 images<" in drawn.read_text(encoding="utf-8")
    assert str(MeasuredOn(str(drawn))) == "7 images"
