import pandas as pd

from vitscope.measures.given import Parts


def merge_hessian(parts: Parts) -> pd.DataFrame:
    """Join the batches of all snapshots, and print how many eigenvalues have not converged."""
    table = pd.concat(parts.tables, ignore_index=True)
    for snapshot, rows in table.groupby("snapshot", sort=False):
        failed = int((~rows["converged"]).sum())
        if failed:
            print(
                f"{snapshot}: {failed} of {len(rows)} eigenvalues have not converged: raise "
                f"analysis.hessian.iterations"
            )
    return table
