from pathlib import Path

import pandas as pd
import pytest
import yaml

from tests.helpers.networks import build_empty
from vitscope.buildup import rule
from vitscope.buildup.table import (
    BUILDUP,
    digest_of_step,
    label_buildup_digests,
    scores_of,
    tabulate_buildup,
)
from vitscope.errors import VitscopeError

PLAN = rule.Plan((2, 2, 2, 2), 1, 3)
ARCH = {"block": "basic", "blocks": [2, 2, 2, 2], "heads": [1, 1, 2, 2], "width": 4}
BASELINE = {"family": "alternet", "arch": ARCH, "classes": 10, "image_size": 32}


def results(*correct: int) -> pd.DataFrame:
    parameters = range(1000, 1000 + len(correct))
    return pd.DataFrame({"parameters": parameters, "images": 200, "correct": correct})


def test_the_table_says_what_was_decided_and_why(tmp_path: Path) -> None:
    found = tabulate_buildup("grown", PLAN, results(100, 110, 110, 120))
    assert found["attention"].tolist() == ["0, 0, 0, 0", "0, 0, 0, 1", "0, 0, 1, 1", "0, 1, 0, 1"]
    assert found["stage"].fillna("").tolist() == ["", "c4", "c3", "c2"]
    assert found["msas"].tolist() == [0, 1, 2, 2]
    assert found["decision"].tolist() == ["baseline", "kept", "rejected", "kept"]
    assert found["best"].tolist()[1:] == [0.5, 0.55, 0.55]
    assert found["next"].tolist() == [
        "c4: 1",
        "c3: 2",
        "c2: 2",
        "ended: no more steps are asked for",
    ]
    # Wilson's interval of 100 of 200, by its closed form.
    z, n, p = 1.959963985, 200, 0.5
    half = z / (1 + z**2 / n) * (p * (1 - p) / n + z**2 / (4 * n**2)) ** 0.5
    assert found["ci_low"][0] == pytest.approx(0.5 - half, abs=1e-9)
    assert found["ci_high"][0] == pytest.approx(0.5 + half, abs=1e-9)
    path = tmp_path / "table.parquet"
    BUILDUP.write(found, path)
    assert BUILDUP.read(path)["parameters"].tolist() == [1000, 1001, 1002, 1003]


def test_digests_of_all_steps_are_labelled() -> None:
    of_steps = {digest_of_step(n): f"c{n}" for n in range(11)}
    labelled = label_buildup_digests({"table": "buildup", "data_sha256": "d", **of_steps})
    assert [*labelled.items()] == [
        ("Data SHA-256", "d"),
        *((f"Checkpoint SHA-256 of step {n}", f"c{n}") for n in range(11)),
    ]


def test_a_build_up_that_ends_with_the_first_stage() -> None:
    found = tabulate_buildup("grown", rule.Plan((2, 1, 1, 2), 1, 9), results(100, 90, 90))
    assert found["next"].tolist()[-1] == "ended: no stage is left"
    assert found["attention"].tolist()[-1] == "1, 0, 0, 0"


def test_what_a_step_tries_is_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "tried.json"
    tried = rule.propose_step(BASELINE, PLAN, [0.5])
    rule.write_buildup_proposal(tried, path)
    assert rule.read_buildup_proposal(path) == tried
    assert tried.step == 1
    step, network = rule.buildup_network_to_try(path, "buildups.grown")
    assert step == 1
    assert network == BASELINE | {"arch": ARCH | {"attention": [0, 0, 0, 1]}}
    # Such a network can be built, and has its MSA at the end of the last stage.
    built = build_empty("alternet", network["arch"], 10, 32)
    names = {name.split(".attn.")[0] for name, _ in built.named_modules() if ".attn." in name}
    assert names == {"layer4.1"}


def test_a_step_behind_the_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tried.json"
    rule.write_buildup_proposal(rule.propose_step(BASELINE, PLAN, [0.5, 0.5, 0.5, 0.5]), path)
    assert rule.read_buildup_proposal(path) == rule.Proposal(4, None)
    with pytest.raises(VitscopeError, match=r"buildups\.grown: there is no step 4: the "):
        rule.buildup_network_to_try(path, "buildups.grown")


@pytest.mark.parametrize("text", ["", "{}", '{"step": 1, "networks": null}'])
def test_a_file_that_is_damaged(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tried.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(VitscopeError, match="does not say what is tried: delete it and run again"):
        rule.read_buildup_proposal(path)


def test_the_best_network_is_a_model_of_a_study() -> None:
    found = results(100, 110, 105, 109)
    weights = [{"path": f"step_{n}/end.safetensors"} for n in range(4)]
    text = rule.describe_best_of_buildup(
        "grown", PLAN, scores_of(found), baseline=BASELINE, data="shapes32", weights=weights
    )
    assert yaml.safe_load(text) == {
        "grown": {
            "label": "AlterNet (0, 0, 0, 1)",
            "family": "alternet",
            "arch": ARCH | {"attention": [0, 0, 0, 1]},
            "data": "shapes32",
            "checkpoint": {"path": "step_1/end.safetensors"},
        }
    }
