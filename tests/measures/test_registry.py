"""The rooms of measures: each is complete, and is read without anything heavy."""

import inspect
import subprocess
import sys
from collections import Counter
from importlib import import_module

import pytest

from vitscope.errors import VitscopeError
from vitscope.files.tables import Table
from vitscope.measures import registry
from vitscope.settings.loading import BUNDLED_STUDIES, load_study

HEAVY = ("torch", "torchvision", "timm", "numpy", "scipy", "pandas", "pyarrow", "matplotlib", "PIL")
WITHOUT = """
import sys
import {module}
heavy = sorted(set(sys.modules) & {heavy})
if heavy:
    sys.exit("{module} imports " + ", ".join(heavy))
"""


def imports_nothing_heavy(*modules: str) -> None:
    names = ", ".join(modules)
    code = WITHOUT.format(module=names, heavy=set(HEAVY))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_declarations_import_nothing_heavy() -> None:
    imports_nothing_heavy(*(registry.module(name, "measure") for name in registry.names()))


def test_reading_studies_imports_nothing_heavy() -> None:
    imports_nothing_heavy("vitscope.settings.loading")


@pytest.mark.parametrize("name", registry.names())
def test_a_room_is_complete(name: str) -> None:
    measure = registry.declared(name)
    assert measure.name == name

    table = import_module(registry.module(name, "table"))
    assert isinstance(table.TABLE, Table)
    assert table.TABLE.name == name
    if measure.needs == "latents":
        assert isinstance(table.PART, Table)

    if measure.parts_of is None:
        assert inspect.isfunction(import_module(registry.module(name, "compute")).measure)
    else:
        assert measure.needs == "parts"
        assert measure.parts_of in registry.names()
    merging = registry.merging_module(name)
    if measure.of_pairs or measure.parts_of is not None or hasattr(table, "PART"):
        # Other parts are merged by joining them.
        assert merging
    if merging:
        assert measure.in_parts
        assert inspect.isfunction(import_module(merging).merge)


STUDY = load_study(BUNDLED_STUDIES / "mini.yaml")
SHOWN = [(name, model) for name in registry.names() for model in STUDY.models_of(name)]


@pytest.mark.parametrize(("name", "model"), SHOWN)
def test_functions_take_what_the_declaration_gives_them(name: str, model: str) -> None:
    measure = registry.declared(name)
    given = {}
    if measure.parts_of is None:
        compute = registry.module(name, "compute")
        given[compute, "measure"] = 1, measure.part(STUDY, model, 0)
    if merging := registry.merging_module(name):
        # The parts of the model, or of both models of a pair.
        given[merging, "merge"] = 1 + measure.of_pairs, measure.merging(STUDY, model)
    for (module, function), (count, settings) in given.items():
        found = getattr(import_module(module), function)
        inspect.signature(found).bind(*["what a job gives"] * count, **settings)


def test_the_bundled_study_shows_every_room() -> None:
    assert {name for name, _ in SHOWN} == set(registry.names())


def test_a_kind_of_figure_is_drawn_by_its_room() -> None:
    """The captions are looked for where they are read."""
    for name, kind in registry.kinds().items():
        module = import_module(registry.figure_module(kind))
        assert inspect.isfunction(module.plot), name
        assert kind.tables[0] == kind.measure


def test_kinds_of_figures_have_one_room_each() -> None:
    declared = [kind for name in registry.names() for kind in registry.declared(name).figures]
    assert [kind for kind, count in Counter(declared).items() if count > 1] == []


def test_a_measure_that_is_not_there_is_refused() -> None:
    with pytest.raises(VitscopeError) as caught:
        registry.module("fourrier", "table")
    assert str(caught.value) == "There is no measure 'fourrier'. Did you mean 'fourier'?"
