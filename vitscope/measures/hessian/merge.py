"""The largest eigenvalues of all batches and snapshots in one table."""

import pandas as pd

from vitscope.measures.given import Parts
from vitscope.progress import Say


def say_what_did_not_converge(table: pd.DataFrame, say: Say = print) -> None:
    """Say of each snapshot how many eigenvalues did not converge, if any."""
    for snapshot, rows in table.groupby("snapshot", sort=False):
        failed = int((~rows["converged"]).sum())
        if failed:
            say(
                f"{snapshot}: {failed} of {len(rows)} eigenvalues have not converged: raise "
                f"analysis.hessian.iterations"
            )


def merge(parts: Parts) -> pd.DataFrame:
    """Join the batches of all snapshots, and say which eigenvalues have not converged."""
    table = pd.concat(parts.tables, ignore_index=True)
    say_what_did_not_converge(table)
    return table
