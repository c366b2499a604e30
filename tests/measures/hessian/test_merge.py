from collections.abc import Iterator

import pandas as pd
import pytest

from vitscope.measures.given import Parts
from vitscope.measures.hessian.merge import merge, say_what_did_not_converge

FAILED = "1 of 20 eigenvalues have not converged: raise analysis.hessian.iterations"


def parts() -> Iterator[pd.DataFrame]:
    """Yield four parts of two batches each, of two snapshots."""
    for snapshot in ("warmup", "end"):
        for first in (0, 2):
            rows = pd.DataFrame(
                {"batch": [first] * 5 + [first + 1] * 5, "rank": [*range(1, 6)] * 2}
            )
            converged = (rows["batch"] > 0) | (rows["rank"] != 3)
            yield rows.assign(model="vit", snapshot=snapshot, converged=converged)


def test_parts_of_all_snapshots_are_merged(capsys: pytest.CaptureFixture[str]) -> None:
    merged = merge(Parts("vit", parts(), pd.DataFrame()))
    assert merged["snapshot"].tolist() == ["warmup"] * 20 + ["end"] * 20
    assert merged["batch"].tolist() == [batch for batch in range(4) for _ in range(5)] * 2
    assert capsys.readouterr().out == f"warmup: {FAILED}\nend: {FAILED}\n"


def test_what_did_not_converge_is_said_of_each_snapshot() -> None:
    table = pd.concat(parts())
    lines: list[str] = []
    say_what_did_not_converge(table, lines.append)
    assert lines == [f"warmup: {FAILED}", f"end: {FAILED}"]
    say_what_did_not_converge(table[table["batch"] > 0], lines.append)
    assert len(lines) == 2
