"""Merge parts with a user's own function."""

import pandas as pd

from vitscope.errors import VitscopeError
from vitscope.measures.given import Parts
from vitscope.measures.own.compute import place_of
from vitscope.networks.building.own_code import find_code
from vitscope.networks.building.own_run import running


def merge(
    parts: Parts, file: str, module: str, code: str, resamples: int, seed: int
) -> pd.DataFrame:
    """Call `merge` of a file, with the parts, the cut points and how intervals are made."""
    with running(find_code(file, module), "merge") as own:
        table = own.merge(parts, resamples=resamples, seed=seed)
        if not isinstance(table, pd.DataFrame):
            raise VitscopeError(
                f"{place_of(own.merge)}: merge returned a {type(table).__name__}, allowed: a "
                f"pandas.DataFrame with the columns of `TABLE`."
            )
        return table
