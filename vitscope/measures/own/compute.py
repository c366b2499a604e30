"""Measure with a user's own functions, and read the claims of the user's file."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vitscope.claims.claim import Claim, Evidence, in_order
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.files.tensors import as_float, checksum
from vitscope.measures.given import Latents, OnLatents, Parts
from vitscope.measures.measure import Given
from vitscope.measures.per_image import part_of
from vitscope.networks.building.own_code import (
    OwnCode,
    check_user_call,
    file_and_line_of,
    find_code,
    find_user_function,
    running_user_code,
    shown,
)

FUNCTION = "measure"


def measure(given: Any, file: str, module: str, code: str, keywords: Given) -> pd.DataFrame:
    """Call the function `measure` of a user's file.

    `code` is the digest of the code that runs: an argument only so that the job depends on it.
    """
    with running_user_code(find_code(file, module), FUNCTION) as own:
        function = find_user_function(own, FUNCTION)
        if isinstance(given, OnLatents):
            return call_own_measure(function, given.latents, given.first_image, keywords)
        check_user_call(function, {"what it measures": given}, keywords)
        return _check_own_table(function(given, **keywords), FUNCTION, function)


def check_call_of_measure(file: str, module: str, code: str, keywords: Given) -> None:
    """Import a user's file; refuse it if its function `measure` cannot be called as planned."""
    with running_user_code(find_code(file, module), FUNCTION) as own:
        check_user_call(find_user_function(own, FUNCTION), {"what it measures": None}, keywords)


def merge(
    parts: Parts, file: str, module: str, code: str, resamples: int, seed: int
) -> pd.DataFrame:
    """Call the function `merge` of a user's file with the parts and the bootstrap settings."""
    with running_user_code(find_code(file, module), "merge") as own:
        return _check_own_table(
            own.merge(parts, resamples=resamples, seed=seed), "merge", own.merge
        )


def _check_own_table(table: Any, name: str, function: Callable[..., Any]) -> pd.DataFrame:
    if not isinstance(table, pd.DataFrame):
        raise VitscopeError(
            f"{file_and_line_of(function)}: {name} returned a {type(table).__name__}, allowed: a "
            f"pandas.DataFrame with the columns of `TABLE`."
        )
    return table


def call_own_measure(
    function: Callable[..., Any], latents: Latents, first_image: int, keywords: Given
) -> pd.DataFrame:
    """Call a user's function with the maps of each cut point; return a part with its values."""
    values = [
        call_own_function(function, read_maps(latents, name), name, first_image, keywords)
        for name in latents.names
    ]
    return part_of(values, first_image, "value")


def read_maps(latents: Latents, name: str) -> Array:
    """Check all maps of a cut point against their checksum, and copy them into memory."""
    maps = latents.mapped(name)
    latents.check(name, checksum(maps, 0))
    return np.array(as_float(maps, latents.dtype(name)))


def call_own_function(
    function: Callable[..., Any], maps: Array, name: str, first_image: int, keywords: Given
) -> Array:
    """Call a user's function with the maps of a cut point; require one number for each image."""
    shape = maps.shape
    where = f"{file_and_line_of(function)}: {function.__name__}"
    check_user_call(function, {"what it measures": maps}, keywords)
    result = function(maps, **keywords)
    at = f"at the cut point '{name}', whose maps have the shape {shape}"
    try:
        values = np.asarray(result, np.float64)
    except (TypeError, ValueError) as error:
        raise VitscopeError(
            f"{where} returned a {type(result).__name__} {at}: return one number for each image."
        ) from error
    if values.shape != shape[:1]:
        raise VitscopeError(
            f"{where} returned values of the shape {values.shape} {at}: return one number for each "
            f"of the {shape[0]} images."
        )
    wrong = np.isinf(values) if shape[2:] == (1, 1) else ~np.isfinite(values)
    if wrong.any():
        image = int(np.argmax(wrong))
        raise VitscopeError(
            f"{where} returned {values[image]} for image {first_image + image} {at}: return a "
            f"finite number, or NaN where a map has a single position."
        )
    return values


def read_claims(runs: Mapping[str, str], table: str) -> Evidence:
    """Run a user's file, and return its `CLAIMS` as evidence from the table of its measure."""
    file = Path(runs["file"])
    with running_user_code(OwnCode(file, runs["module"]), "CLAIMS") as own:
        claims = tuple(own.CLAIMS)
        if not all(isinstance(each, Claim) for each in claims):
            raise VitscopeError(
                f"{shown(file)}: CLAIMS: found something else than claims, allowed: a tuple of "
                f"vitscope.claims.claim.Claim."
            )
        return Evidence(table, claims, in_order)
