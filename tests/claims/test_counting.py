"""When a claim holds, and what counting needs."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import (
    count_variances,
    kinds_with_claims,
    published_variances,
    variances,
    with_resamples,
)
from vitscope.measures import registry
from vitscope.networks.finding.cut_points import CUT_POINT

ROOT = Path(__file__).parents[2]


def eight_msas(falling: int, deviation: float | list[float] | None) -> pd.DataFrame:
    """Return the claims of a model of eight MSAs, of which some lower the variance by 1."""
    variance = [value for i in range(8) for value in (9, 8 if i < falling else 10)]
    table = variances("m", ["stem", "msa"] * 8, [8] * 16, variance)
    if deviation is not None:
        table = with_resamples(table, "variance", deviation)
    return count_variances(table)


@pytest.mark.parametrize("falling", range(9))
def test_a_claim_holds_in_more_than_half_of_the_blocks(falling):
    (row,) = eight_msas(falling, None).to_dict("records")
    assert row["measured_value"] == falling / 8
    assert row["holds"] == f"{'yes' if falling > 4 else 'no'}, without an interval"
    assert (row["certain"], row["p"]) == (None, pytest.approx(np.nan, nan_ok=True))


@pytest.mark.parametrize(("falling", "holds"), [(0, "no"), (3, "no"), (5, "yes"), (8, "yes")])
def test_blocks_of_certain_signs_decide_of_the_network(falling, holds):
    """All blocks there are, were they two or twelve: nothing is open but what images leave open."""
    (row,) = eight_msas(falling, 0.01).to_dict("records")
    assert (row["measured_count"], row["measured_total"], row["certain"]) == (falling, 8, 8)
    assert row["measured_low"] == row["measured_high"] == falling / 8
    assert row["holds"] == f"{holds}, in this network"
    # Not one of 400 resamples is on the other side.
    assert row["p"] == 2 / 401
    assert row["margin"] == pytest.approx((falling - (8 - falling)) / 8)


def test_blocks_of_open_signs_leave_a_claim_open():
    # Two of the five MSAs that lower the variance do so by less than images leave open.
    deviation = [5.0] * 4 + [0.01] * 12
    (row,) = eight_msas(5, deviation).to_dict("records")
    assert (row["measured_count"], row["certain"]) == (5, 6)
    assert (row["measured_low"], row["measured_high"]) == (3 / 8, 5 / 8)
    assert (row["measured_verdict"], row["holds"]) == ("open", "open")


def test_what_is_read_off_a_curve_is_shown_and_not_judged():
    theirs = published_variances([0, 0.5, 1], [1.0, 2.0, 3.0])
    claims = count_variances(variances("m", ["stem", "conv", "conv"], [8] * 3, [1, 2, 3]), theirs)
    (row,) = claims[claims["claim"] == "conv_increases_variance"].to_dict("records")
    assert (row["published_count"], row["published_total"], row["published_value"]) == (2, 2, 1)
    assert row["published_verdict"] is None


def test_a_claim_says_on_which_side_of_norms_a_model_is_read():
    points = variances("m", ["stem", "msa", "msa"], [8] * 3, [3, 2, 1])
    points = points.reindex(columns=[*points, *CUT_POINT.keys() - {*points}])
    plain = count_variances(points)
    said = count_variances(points.assign(norm=[None, "before", "before"]))
    assert said["statement"].tolist() == [
        f"{statement} (m is read before its norms)" for statement in plain["statement"]
    ]
    assert said.drop(columns="statement").equals(plain.drop(columns="statement"))


def test_counting_needs_neither_networks_nor_figures_nor_studies():
    claims = (str(registry.claiming(registry.kinds()[kind])) for kind in kinds_with_claims())
    modules = ", ".join({each.partition(":")[0] for each in claims})
    unneeded = {"torch", "matplotlib", "vitscope.measures.registry", "vitscope.measures.measure"}
    code = (
        f"import sys, vitscope.claims.counting, {modules}; print(*({unneeded} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    assert done.stdout.split() == []
