"""When a claim holds, and what counting needs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.claims import count_variances, kinds_with_claims, variances
from vitscope.measures import registry
from vitscope.networks.finding.cut_point_columns import CUT_POINT

ROOT = Path(__file__).parents[2]


# Wilson's intervals of so many of eight end at 0.47 and 0.59, and begin at 0.41 and 0.53.
@pytest.mark.parametrize(
    ("falling", "holds"),
    [(0, "no"), (1, "no"), (2, "undecided"), (6, "undecided"), (7, "yes"), (8, "yes")],
)
def test_a_claim_holds_in_more_than_half_of_the_blocks(falling, holds):
    variance = [value for i in range(8) for value in (9, 8 if i < falling else 10)]
    claims = count_variances(variances("m", ["stem", "msa"] * 8, [8] * 16, variance))
    assert claims["holds"].tolist() == [holds]
    assert claims["measured_value"].tolist() == [falling / 8]


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
    measures = {registry.kinds()[kind].measure for kind in kinds_with_claims()}
    modules = ", ".join(registry.module(measure, "claims") for measure in measures)
    unneeded = {"torch", "matplotlib", "vitscope.measures.registry", "vitscope.measures.measure"}
    code = (
        f"import sys, vitscope.claims.counting, {modules}; print(*({unneeded} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    assert done.stdout.split() == []
