"""Merge what was measured of one model, batch by batch and snapshot by snapshot."""

from collections.abc import Iterable

import pandas as pd

from vitscope.files.tables import read_metadata, read_table
from vitscope.networks.weight_sources import END
from vitscope.progress import Say


def merge(name: str, parts: Iterable[str]) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the rows of the tables `name`, in the order of the parts, and what they are of."""
    tables, facts = [], {}
    for part in parts:
        tables.append(read_table(name, part))
        metadata, snapshot = read_metadata(part), tables[-1]["snapshot"].iloc[0]
        what = "checkpoint" if snapshot == END else f"snapshot {snapshot}"
        facts[f"{what}_sha256"] = metadata["checkpoint_sha256"]
        facts["data_sha256"] = metadata["data_sha256"]
    return pd.concat(tables, ignore_index=True), facts


def tell_convergence(table: pd.DataFrame, say: Say = print) -> None:
    """Say of each snapshot how many eigenvalues did not converge, if any."""
    for snapshot, rows in table.groupby("snapshot", sort=False):
        failed = int((~rows["converged"]).sum())
        if failed:
            say(
                f"{snapshot}: {failed} of {len(rows)} eigenvalues have not converged: raise "
                f"analysis.hessian.iterations"
            )
