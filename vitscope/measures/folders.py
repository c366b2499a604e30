"""Find and read the folders of measures, in vitscope and in installed packages.

A package announces its folder by an entry point of the group `vitscope.measures`.
"""

import os
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from vitscope.errors import VitscopeError, quoted
from vitscope.measures.measure import Measure
from vitscope.measures.needs import NEEDS, READABLE
from vitscope.settings.section import schema_of_section

GROUP = "vitscope.measures"
# If this environment variable is set, no package is read; vitscope's tests and `make format` set
# it.
NO_PACKAGES = "VITSCOPE_NO_PACKAGES"


def measures_in_folder(package: str) -> dict[str, Measure]:
    """Import the measures that a folder, given as a module name, declares as constants."""
    constants = vars(import_module(f"{package}.measure")).values()
    found = [place_in_folder(each, package) for each in constants if isinstance(each, Measure)]
    return {each.name: each for each in found}


def place_in_folder(measure: Measure, package: str) -> Measure:
    """Make the names that a measure declares absolute; fill in the names of its figures."""

    def placed(declared: Any, *keys: str, **more: str) -> Any:
        said = {key: getattr(declared, key) for key in keys}
        inner = {key: name for key, name in said.items() if name and "." not in name.split(":")[0]}
        return replace(declared, **{key: f"{package}.{inner[key]}" for key in inner}, **more)

    figures = {
        name: placed(
            kind, "draw", "claims", "sketch", "sketch_change", measure=measure.name, name=name
        )
        for name, kind in measure.figures.items()
    }
    merge = placed(measure.merge, "function")
    own: Measure = placed(measure, "measure", package=package)
    return replace(own, figures=figures, merge=merge)


@dataclass(frozen=True)
class Installed:
    """Describes the measures in installed packages.

    `places` maps each top-level package to the folders that hold its code, `versions` each
    distribution to its version. `left_out` has a sentence about each package that was left out.
    """

    measures: Mapping[str, Measure]
    places: Mapping[str, list[Path]]
    versions: Mapping[str, str]
    left_out: str = ""


def read_installed_folders(find_taken: Callable[[], Set[str]]) -> Installed:
    """Read what installed packages declare; refuse a name that is already taken.

    A package that cannot be read is left out, since most studies do not need it.
    """
    found: dict[str, Measure] = {}
    places: dict[str, list[Path]] = {}
    versions, left_out = {}, ""
    entries = () if os.environ.get(NO_PACKAGES) else entry_points(group=GROUP)
    # Find the taken names only if there are packages, since this imports all declarations.
    taken = find_taken() if entries else frozenset[str]()
    for entry in sorted(entries, key=lambda each: (each.name, each.value)):
        try:
            place, measures = _read_package_folder(entry.value)
        except Exception as error:
            why = error if isinstance(error, VitscopeError) else f"{type(error).__name__}: {error}"
            left_out += f" The measures of the package '{entry.value}' are left out: {why}."
            continue
        named = {*measures, *(kind for each in measures.values() for kind in each.figures)}
        for name in sorted(named & taken):
            raise VitscopeError(
                f"The package '{entry.value}' has a measure or a kind of figure of the name "
                f"{quoted(name)}, which is taken: uninstall it, or set {NO_PACKAGES}=1 to leave "
                f"packages out."
            )
        taken = taken | named
        found |= measures
        places.setdefault(entry.value.partition(".")[0], []).append(place)
        if entry.dist:
            versions[entry.dist.name] = entry.dist.version
    return Installed(found, places, versions, left_out)


def _read_package_folder(package: str) -> tuple[Path, dict[str, Measure]]:
    """Return the folder of the top-level package, and the measures; refuse an invalid measure."""
    file = Path(str(import_module(f"{package}.measure").__file__))
    inner = package.split(".")[1:]
    place = file.parents[len(inner)]
    if place.joinpath(*inner, "measure.py") != file:
        raise VitscopeError(f"its folders are not named like its modules, but {file.parent}")
    measures = measures_in_folder(package)
    if not measures:
        raise VitscopeError("its measure.py has no constant that is a Measure")
    for name, measure in measures.items():
        if measure.needs not in NEEDS or not {*measure.reads} <= READABLE.keys():
            raise VitscopeError(f"{name} needs or reads what vitscope.measures.needs has not")
        options = [each.options for each in measure.figures.values()]
        for settings in filter(None, [measure.settings, *options]):
            schema_of_section(settings)
    return place, measures
