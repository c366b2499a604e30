import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest

import vitscope
from vitscope.drawing.curves_page import page_of_curves
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import look_of
from vitscope.jobs.curves import CURVES, show_curves_job, tables_of_curves
from vitscope.jobs.figures import KINDS_OF_PAGE
from vitscope.jobs.job import Resources
from vitscope.jobs.tables import find_table
from vitscope.measures.registry import columns_of, kinds
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

MEMBER = {"model": "vit", "label": "ViT", "family": "vit"}


def data_of(page: str) -> Any:
    return json.loads(page.partition('id="data">')[2].partition("</script>")[0])


@pytest.fixture(scope="module")
def scope() -> vitscope.Scope:
    bundled = vitscope.bundled("vit")
    few = {key: bundled[key][:24] for key in ("images", "labels")}
    return vitscope.look(**bundled | few)


@pytest.fixture(scope="module")
def tables(scope: vitscope.Scope) -> dict[str, pd.DataFrame]:
    return {name: scope.table(name, resamples=True).assign(model="vit") for name in CURVES}


@pytest.fixture(scope="module")
def curves(
    tables: dict[str, pd.DataFrame], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[dict[str, Any]]]:
    """The points of each table on the page that the job writes."""
    folder = tmp_path_factory.mktemp("curves")
    for name, table in tables.items():
        find_table(name).write(table, folder / name)
    inputs = {name: folder / name for name in tables}
    columns = {name: columns_of(name) for name in tables}
    values = {"title": "a study", "members": [MEMBER], "columns": columns}
    show_curves_job(inputs, {"page": folder / "page.html"}, values, Resources())
    found = data_of((folder / "page.html").read_text(encoding="utf-8"))["curves"]
    return dict(zip(CURVES, (each["vit"] for each in found), strict=True))


@pytest.mark.parametrize(("table", "kind"), [*zip(CURVES, KINDS_OF_PAGE, strict=True)])
def test_points_are_those_of_the_figure(
    scope: vitscope.Scope, curves: dict[str, list[dict[str, Any]]], table: str, kind: str
) -> None:
    assert table in kinds()[kind].tables
    found = np.array([(point["depth"], point["value"]) for point in curves[table]])
    # The figure of lesions has each in the middle of its block.
    axes = [1] if kind == "lesion" else [0, 1]
    lines = [np.array(line.get_xydata()) for line in scope.plot(kind).axes[0].lines]
    assert any(
        line.shape == found.shape and np.allclose(line[:, axes], found[:, axes], rtol=1e-12)
        for line in lines
    )


def test_blocks_values_and_intervals_are_said(
    tables: dict[str, pd.DataFrame], curves: dict[str, list[dict[str, Any]]]
) -> None:
    rows = tables["feature_variance"].sort_values("index").to_dict("records")
    for row, point in zip(rows, curves["feature_variance"], strict=True):
        said = re.fullmatch(r"ViT, (\S+) \((\w+)\): (\S+) \((\S+) to (\S+)\)", point["said"])
        assert said
        assert said[1] == row["name"]
        assert said[2].lower() == row["kind"]
        numbers = [float(each) for each in said.groups()[2:]]
        np.testing.assert_allclose(
            numbers, [row[key] for key in ("variance", "ci_low", "ci_high")], rtol=5e-4
        )
        assert point["msa"] == (row["kind"] == "msa")


def test_what_has_no_value_has_no_point_and_no_text_is_an_element() -> None:
    table = pd.DataFrame({"model": "a", "index": [1, 0, 2], "depth": [0.5, 0, 1], "kind": "mlp"})
    table = table.assign(name="</script><b>", value=[1, 2, None], low=[None, 1.5, None], high=2.5)
    members = [Member("a", "<img src=x>", "vit"), Member("b", "B", "vit")]
    page = page_of_curves("<i>", members, {"<u>": table})
    (curve,) = data_of(page)["curves"]
    assert [(point["value"], point["low"]) for point in curve["a"]] == [(2, 1.5), (1, None)]
    assert curve["a"][1]["said"] == "<img src=x>, </script><b> (MLP): 1"
    assert "b" not in curve
    found = Elements()
    found.feed(page)
    assert not {"img", "b", "i", "u"} & {*found.names}
    assert found.names.count("script") == 2


def page_of(*members: Member, images: list[int] | None = None) -> str:
    rows = {
        "index": [0],
        "depth": [0],
        "kind": "msa",
        "name": "b",
        "value": [1],
        "low": 0,
        "high": 2,
    }
    table = pd.concat([pd.DataFrame(rows).assign(model=each.model) for each in members])
    known = {} if images is None else {"images": images}
    return page_of_curves("t", members, {"u": table.assign(**known)})


def test_three_families_are_on_at_first_in_the_colours_of_figures() -> None:
    named = ("resnet", "vit", "vit", "vit", "vit", "vit", "swin", "pit", "pit")
    members = [Member(f"m{at}", f"M{at}", family) for at, family in enumerate(named)]
    page = page_of(*members)
    boxes = re.findall(r'border-color: (#\w+)"><input type="checkbox"( checked)?> (\w+)<', page)
    assert [label for _, checked, label in boxes if checked] == ["M0", "M1", "M6"]
    colors = {label: color for color, _, label in boxes}
    for at in (0, 1, 6, 7):
        assert colors[f"M{at}"] == look_of(members[at]).color
    looks = [(each["color"], each["dashes"]) for each in data_of(page)["models"]]
    assert len({*looks}) == len(members)
    # With fewer families, three models are on.
    few = re.findall(r"checked> (\w+)", page_of(*members[1:6]))
    assert few == ["M1", "M2", "M3"]


def test_a_curve_says_on_how_many_images_it_was_measured() -> None:
    members = [Member("a", "A", "vit"), Member("b", "B", "resnet")]
    assert '<p class="n">Measured on 250 images.</p>' in page_of(*members, images=[250, 250])
    assert "Measured on 250 to 1,000 images." in page_of(*members, images=[250, 1000])
    assert "Measured on" not in page_of(*members)


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.append(tag)


def test_a_study_without_curves_by_depth_has_no_page() -> None:
    studies = {
        name: load_study(BUNDLED_STUDIES / f"{name}.yaml") for name in ("mini", "shape_bias")
    }
    assert tables_of_curves(studies["mini"]) == [*CURVES]
    assert tables_of_curves(studies["shape_bias"]) == []
