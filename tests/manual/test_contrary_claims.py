import re

import pandas as pd
import pytest

from vitscope.errors import VitscopeError
from vitscope.manual.contrary_claims import list_contrary
from vitscope.manual.pages import NUMBER, STUDIES, regenerate
from vitscope.package_data import ROOT


def row(model: str, holds: str, value: float, **more: object) -> dict[str, object]:
    return {
        "claim": "falls",
        "statement": "It falls",
        "source": "Fig. 9",
        "model": model,
        "versus": None,
        "snapshot": None,
        "measure": "fall",
        "percent": False,
        "holds_above": 0.0,
        "published_total": None,
        "trainings": 1,
        "measured_count": None,
        "measured_total": None,
        "measured_value": value,
        "measured_low": None,
        "measured_high": None,
        "recipe": None,
        "recipe_low": None,
        "recipe_high": None,
        "q": float("nan"),
        "holds": holds,
        **more,
    }


def listed(*rows: dict[str, object]) -> list[str]:
    labels = {"own": {name: name.upper() for name in "abcd"}}
    return [*list_contrary({"own": pd.DataFrame(rows)}, labels, {"falls": "2 of 3"})]


def test_what_fails_is_listed_and_what_is_open_where_its_value_speaks_against_the_claim() -> None:
    found = listed(
        row("a", "no, in this network", -0.25, q=0.07),
        row("b", "open", -0.5, measured_low=-2.0, measured_high=1.0),
        row("c", "open", 0.5),
        row("d", "yes, in this network", 2.0),
    )
    assert found == [
        "- **It falls** (Fig. 9; there 2 of 3).\n"
        "  - `own`: fails in 1 of 4 networks: fall: A -0.250 (q 0.07).\n"
        "  - `own`: is open, the value contrary, in 1 of 4 networks: fall: B -0.500 (-2.000 to "
        "+1.000)."
    ]
    assert listed(row("c", "open", 0.5), row("d", "yes", 2.0)) == []


def test_trainings_of_one_recipe_are_one_network_whose_numbers_stand_side_by_side() -> None:
    of_recipe = {
        "recipe": "a",
        "trainings": 3,
        "recipe_low": -1.0,
        "recipe_high": -0.5,
        "holds_above": 0.5,
    }
    counts = zip("abc", (0, 1, 2), strict=True)
    rows = [
        row(name, "no", count / 4, measured_count=count, measured_total=4, **of_recipe)
        for name, count in counts
    ]
    assert [each.partition(": ")[2] for each in listed(*rows)] == [
        "fails in 1 of 1 networks: A 0, 1, 2 of 4."
    ]


def test_more_contrary_pairs_than_one_reads_are_a_range() -> None:
    found = listed(*(row("a", "no, in this network", -each / 10, versus="b") for each in range(13)))
    assert found[0].endswith("fails in 13 of 13 pairs: fall -1.200 to +0.000.")


@pytest.mark.parametrize("study", STUDIES)
def test_the_page_has_each_network_in_which_a_claim_of_the_paper_fails(study: str) -> None:
    page = (ROOT / "docs" / "paper.md").read_text()
    part = page.partition("## What did not come out as published")[2].partition("\n## ")[0]
    once = pd.read_csv(STUDIES[study] / "claims.csv").drop_duplicates(
        ["model", "versus", "snapshot", "claim"]
    )
    fails = once[once["holds"].str.startswith("no") & once["source"].str.match("Fig|Sec|abs")]
    assert len(fails) > 10
    every = pd.concat(pd.read_csv(folder / "claims.csv") for folder in STUDIES.values())
    for claim, rows in fails.groupby("claim"):
        # The statement of the first row stands for all, whatever smaller batches say in others.
        statement = every[every["claim"] == claim]["statement"].iloc[0]
        of_claim = part.partition(f"- **{statement}**")[2].partition("\n- **")[0]
        recipe = rows["recipe"].where(rows["trainings"] > 1, rows.index)
        (count,) = re.findall(rf"`{study}`: fails in (\d+) of", of_claim)
        assert int(count) == recipe.nunique()


def test_a_number_is_that_of_the_expected_table() -> None:
    rows = pd.read_csv(STUDIES["mini"] / "fit.csv").set_index(["model", "metric"])["value"]
    text = "a <!-- of mini fit vit/error_percent: 100 - value {:.2f} -->1<!-- --> % b"
    expected = f"{100 - rows['vit', 'error_percent']:.2f}"
    assert regenerate(text) == text.replace("-->1<", f"-->{expected}<")
    several = text.replace("vit/", "vit_[12]/")
    numbers = ", ".join(f"{100 - rows[each, 'error_percent']:.2f}" for each in ("vit_1", "vit_2"))
    assert regenerate(several) == several.replace("-->1<", f"-->{numbers}<")


def test_a_claim_that_several_figures_count_is_one_number() -> None:
    rows = pd.read_csv(STUDIES["mini"] / "claims.csv").set_index(["claim", "model"])
    there = rows.loc[("msa_reduces_variance", "vit"), "measured_count"]
    assert len(there) > 1
    text = "<!-- of mini claims msa_reduces_variance/vit: measured_count {:.0f} -->?<!-- -->"
    assert regenerate(text) == text.replace("?", f"{there.iloc[0]:.0f}")


def test_an_accuracy_is_that_of_the_last_epoch_of_a_bundled_history() -> None:
    path = ROOT / "resources" / "checkpoints" / "cifar100" / "vit" / "history.parquet"
    accuracy = pd.read_parquet(path).set_index("epoch")["test_accuracy"]
    text = "<!-- of cifar100 history vit: 100 * test_accuracy {:.2f} -->?<!-- -->"
    assert regenerate(text) == text.replace("?", f"{100 * accuracy[accuracy.index.max()]:.2f}")


def test_a_number_that_no_table_has_is_refused() -> None:
    with pytest.raises(VitscopeError, match="no number value of mini in fit for no:"):
        regenerate("<!-- of mini fit no: value {:.1f} -->1<!-- -->")


def test_every_number_of_a_page_is_read() -> None:
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        text = path.read_text()
        assert len(NUMBER.findall(text)) == text.count("<!-- of "), path
