"""Measure with a user's own functions, and read the claims of the user's file."""

from collections.abc import Callable, Mapping
from inspect import signature
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
from vitscope.networks.building.own_code import OwnCode, find_code, running_user_code, shown


def measure(given: Any, file: str, module: str, code: str, keywords: Given) -> pd.DataFrame:
    """Call the function `measure` of a user's file.

    `code` is the digest of the code that runs: an argument only so that the job depends on it.
    """
    with running_user_code(find_code(file, module), "measure") as own:
        if isinstance(given, OnLatents):
            return call_own_measure(own.measure, given.latents, given.first_image, keywords)
        return _check_own_table(own.measure(given, **keywords), "measure", own.measure)


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
    try:
        signature(function).bind(maps, **keywords)
    except TypeError as error:
        given = ", ".join(["feature maps", *keywords])
        raise VitscopeError(
            f"{where} is called with {given}, and does not take them: {error}."
        ) from error
    except ValueError:  # Builtins have no signature.
        pass
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


def file_and_line_of(function: Callable[..., Any]) -> str:
    """Return the file and the line of a function, for messages."""
    code = getattr(function, "__code__", None)
    return f"{shown(Path(code.co_filename))}, line {code.co_firstlineno}" if code else "measure"


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
