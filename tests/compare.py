"""Compare the tables of the mini study with the committed ones, or accept the new ones.

Keys and counts must be equal; measured values may differ by the tolerances of their table, which
cover the order of additions on another processor, and there the few images whose class is a close
call. The bootstrap resamples with the same seed everywhere, so its intervals are as exact as the
means.
"""

import argparse
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from tests.helpers.expected import Expected
from tests.measures.expected import TABLES as OF_MEASURES
from vitscope.claims.intervals import without_resamples
from vitscope.jobs.tables import find_table

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "mini" / "tables"
EXPECTED = Path(__file__).parent / "expected"


TABLES = {
    "blocks": Expected(["model", "index"], 1e-12),
    **{name: expected for name, expected in OF_MEASURES.items() if expected},
    "buildup_fig12a": Expected(["step"], 0.0, 0.003, without=("correct",)),
    "agreement": Expected(["figure", "model", "published_series"], 1e-3, 1e-3),
    "claims": Expected(
        ["figure", "model", "claim", "versus", "snapshot"], 0.05, 0.05, without=("values",)
    ),
}
# The columns of those whose names say what they are of.
COLUMNS = {"buildup_fig12a": "buildup"}
SHOWN = 5


def differences(name: str, old: pd.DataFrame, new: pd.DataFrame) -> list[str]:
    """Return one line for every value that moved, or one if the rows are others."""
    keys, relative, absolute, _, own = TABLES[name]
    old, new = old.set_index(keys), new.set_index(keys)
    if not old.index.equals(new.index) or list(old.columns) != list(new.columns):
        return [f"{name}: {text}" for text in _others(old, new)]
    lines = []
    for column in old.columns:
        before, after = old[column], new[column]
        if pd.api.types.is_float_dtype(before) and pd.api.types.is_float_dtype(after):
            allowed = own.get(str(column), absolute)
            same = np.isclose(after, before, rtol=relative, atol=allowed, equal_nan=True)
        else:
            same = ((before == after) | (before.isna() & after.isna())).to_numpy()
        for key, was, now in zip(old.index[~same], before[~same], after[~same], strict=True):
            change = _change(was, now) if isinstance(was, float) else ""
            lines.append(f"{name} {key} {column}: was {was}, is {now}{change}")
    return lines


def _others(old: pd.DataFrame, new: pd.DataFrame) -> list[str]:
    """Return what rows and columns there are more, fewer, or in another order."""
    found = []
    for what in ("index", "columns"):
        before, after = getattr(old, what), getattr(new, what)
        kinds = {"gone": before.difference(after, False), "new": after.difference(before, False)}
        parts = [
            f"{len(some)} {kind}, {', '.join(map(str, some[:SHOWN]))}{' ...' * (len(some) > SHOWN)}"
            for kind, some in kinds.items()
            if len(some)
        ]
        if parts or list(before) != list(after):
            change = "; ".join(parts) or "in another order"
            found.append(f"{'rows' if what == 'index' else 'columns'} differ: {change}")
    return found


def _change(was: float, now: float) -> str:
    if was == 0:
        return f", change {now:.2e}"
    return f", relative change {now / was - 1:.2e}"


def as_text(name: str, folder: Path = RESULTS) -> str:
    """Return a table of the last run, or one in another folder, as it is committed."""
    table = pd.read_parquet(folder / f"{name}.parquet").drop(columns=[*TABLES[name].without])
    frame = without_resamples(table)
    return frame.to_csv(index=False, float_format="%.9g", lineterminator="\n")


def read_text(name: str, text: str) -> pd.DataFrame:
    """Read a table from its committed form, in which a float may look like a whole number."""
    frame = pd.read_csv(StringIO(text))
    schema = find_table(COLUMNS.get(name, name)).schema
    floats = [field.name for field in schema if pa.types.is_floating(field.type)]
    return frame.astype({column: float for column in floats if column in frame})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accept", action="store_true", help="make the new tables the expected")
    accept = parser.parse_args().accept
    moved = []
    for name in TABLES:
        path, text = EXPECTED / f"{name}.csv", as_text(name)
        if accept:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.is_file():
            moved.append(f"{name}: nothing is expected yet")
        else:
            old = read_text(name, path.read_text(encoding="utf-8"))
            moved += differences(name, old, read_text(name, text))
    if moved:
        sys.exit("\n".join([*moved, "`make accept` makes the new tables the expected ones."]))
    print("accepted the tables" if accept else "all tables are as expected")


if __name__ == "__main__":
    main()
