from importlib import import_module
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import count, evidence, kinds_with_claims
from vitscope.claims.claim import Traits
from vitscope.claims.counting import measured_points
from vitscope.claims.intervals import RESAMPLED, without_resamples
from vitscope.claims.points import Points
from vitscope.claims.report import VERDICTS
from vitscope.claims.statistics import Found
from vitscope.claims.tables import CLAIMS
from vitscope.jobs.tables import find_table
from vitscope.measures import registry

KINDS = kinds_with_claims()


def module_of(kind: str) -> ModuleType:
    folder = registry.declared(registry.kinds()[kind].measure).package.rpartition(".")[2]
    return import_module(f"tests.measures.{folder}.test_claims")


def example(kind: str) -> dict[str, pd.DataFrame]:
    tables: dict[str, pd.DataFrame] = module_of(kind).EXAMPLES[kind]
    return tables


def traits_of(kind: str) -> dict[str, dict]:
    """Return the settings of the models of an example, by which some claims choose them."""
    return getattr(module_of(kind), "TRAITS", {}).get(kind, {})


def count_example(kind: str, tables: dict[str, pd.DataFrame], models: list[str]) -> pd.DataFrame:
    return count(kind, tables, models, traits_of=traits_of(kind))


def models_of(tables: dict[str, pd.DataFrame]) -> list[str]:
    return list(dict.fromkeys(tables["blocks"]["model"]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_does_not_matter(kind, seed):
    tables = example(kind)
    shuffled = {name: table.sample(frac=1, random_state=seed) for name, table in tables.items()}
    models = models_of(tables)
    pd.testing.assert_frame_equal(
        count_example(kind, shuffled, models), count_example(kind, tables, models)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_keeps_its_promises(kind, tmp_path):
    tables = example(kind)
    claims = count_example(kind, tables, models_of(tables))
    assert len(claims)
    CLAIMS.write(claims, tmp_path / "claims")
    back = CLAIMS.read(tmp_path / "claims")
    for row in back.to_dict("records"):
        assert row["holds"] in VERDICTS
        if row["holds"] != "open":
            assert row["holds"].startswith("yes") == (row["measured_value"] > row["holds_above"])
        # Each of an example was trained once.
        assert row["recipe_verdict"] == "one training"
        assert row["measured_verdict"] == row["holds"].removesuffix(", in this network")
        assert row["measure"].startswith(("share of ", "difference of ", "rank correlation of "))
        if pd.notna(row["measured_total"]):
            assert row["percent"]
            assert row["measured_value"] == row["measured_count"] / row["measured_total"]
        if pd.isna(row["measured_low"]):
            assert row["holds"] == "open" or row["holds"].endswith("without an interval")
            assert pd.isna(row["p"])
        else:
            contained = row["measured_low"] <= row["holds_above"] <= row["measured_high"]
            assert contained == (row["holds"] == "open")
        assert not row["certain"] > row["measured_total"]


def resampled_columns(kind: str) -> list[str]:
    """Return the columns of a table of claims that have their values in resamples beside them."""
    columns = find_table(evidence(kind).table).columns
    return [name.removesuffix(RESAMPLED) for name in columns if name.endswith(RESAMPLED)]


def find_each(kind: str, table: pd.DataFrame) -> dict[tuple[str, ...], Found | None]:
    """Return what a table in place of the example's says, by claim and models."""
    of, tables = evidence(kind), example(kind)
    tables = tables | {of.table: table}
    blocks = tables["blocks"].groupby("model")["kind"]
    models = {m: Traits({*kinds}, traits_of(kind).get(m, {})) for m, kinds in blocks}
    points = {model: Points(measured_points(of, tables, model)) for model in models}
    return {
        (claim.name, *subject): claim.statistic.find(*(points[model] for model in subject))
        for claim in of.claims
        for subject in claim.about(models)
    }


@pytest.mark.parametrize("kind", [kind for kind in KINDS if resampled_columns(kind)])
def test_each_resample_is_counted_as_the_values_are(kind):
    table = without_resamples(example(kind)[evidence(kind).table])
    generator, names = np.random.default_rng(0), resampled_columns(kind)
    # Positive factors: some claims are about logarithms.
    factors = generator.lognormal(0, 0.6, (6, len(table), len(names)))
    drawn = [table.assign(**(table[names] * each)) for each in factors]
    lists = {f"{name}{RESAMPLED}": [*np.stack([each[name] for each in drawn], 1)] for name in names}
    alone = [find_each(kind, each) for each in drawn]
    together = find_each(kind, table.assign(**lists))
    assert any(together.values())
    for claim, found in together.items():
        if found:
            expected = [each[claim].value for each in alone]
            np.testing.assert_allclose(found.values[1:], expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["patch_components", "position_similarity"])
def test_what_follows_from_weights_is_exact(kind):
    """Its interval is the value itself, however few there are, and chance has no say."""
    tables = example(kind)
    found = count_example(kind, tables, models_of(tables)).iloc[0]
    assert found["measured_low"] == found["measured_value"] == found["measured_high"]
    assert found["holds"] == "yes, in this network"
    assert pd.isna(found["p"])


@pytest.mark.parametrize("kind", KINDS)
def test_tables_are_those_of_figures(kind):
    assert evidence(kind).table in registry.kinds()[kind].tables


@pytest.mark.parametrize("measure", registry.names())
def test_a_measure_has_claims_of_its_own_figures_alone(measure):
    assert {*registry.claims_of(measure)} <= {*registry.declared(measure).figures}


def test_claims_have_names_of_their_own_and_say_how_they_are_counted():
    claims = {claim for kind in KINDS for claim in evidence(kind).claims}
    assert len({claim.name for claim in claims}) == len(claims)
    assert all(claim.rule.endswith(".") and "paper" in claim.rule for claim in claims)
    assert all(not claim.statement.endswith(".") for claim in claims)
