import inspect
import re
from collections import Counter
from pkgutil import resolve_name

import pytest

from tests.helpers.refusals import refusal
from vitscope.claims.claim import Evidence
from vitscope.files.tables import Table
from vitscope.measures import registry
from vitscope.package_data import ROOT
from vitscope.settings.section import result_settings
from vitscope.studies.loading import BUNDLED_STUDIES, load_study
from vitscope.typed import typed


@pytest.mark.parametrize("name", registry.names())
def test_a_room_is_complete(name: str) -> None:
    measure = registry.declared(name)
    assert measure.name == name
    if measure.needs == "latents":
        assert isinstance(measure.part, Table)

    if measure.parts_of is None:
        assert inspect.isfunction(resolve_name(measure.measure))
    else:
        assert measure.needs == "parts"
        assert measure.parts_of in registry.names()
    merging = measure.merge.function
    if measure.needs == "line":
        assert measure.models > 1
        assert not measure.in_parts
    elif measure.models > 1 or measure.parts_of is not None or measure.part:
        # Other parts are merged by joining them.
        assert merging
    if merging:
        assert measure.in_parts
        assert inspect.isfunction(resolve_name(merging))


STUDY = load_study(BUNDLED_STUDIES / "mini.yaml")
SHOWN = [(name, model) for name in registry.names() for model in STUDY.models_of(name)]


@pytest.mark.parametrize(("name", "model"), SHOWN)
def test_functions_take_what_the_declaration_gives_them(name: str, model: str) -> None:
    measure = registry.declared(name)
    given = {}
    if measure.parts_of is None:
        given[measure.measure] = 1, measure.measuring(STUDY, model, 0)
    if merging := measure.merge.function:
        # The parts of the model, or of both models of a pair.
        given[merging] = measure.models, measure.merging(STUDY, model)
    for function, (count, settings) in given.items():
        found = inspect.signature(resolve_name(function))
        found.bind(*["what a job gives"] * count, **settings)
        if "settings" in settings:
            kind = found.parameters["settings"].annotation
            assert kind is type(measure.read_settings(STUDY))
            assert result_settings(typed(settings["settings"], kind)) == settings["settings"]


def test_the_bundled_study_shows_every_room() -> None:
    # Images that people were shown do not come with the package.
    assert {name for name, _ in SHOWN} == {*registry.names()} - {"beside_people"}


@pytest.mark.parametrize("name", registry.kinds())
def test_what_a_kind_of_figure_names_is_there(name: str) -> None:
    """The captions are looked for where they are read."""
    kind = registry.kinds()[name]
    assert kind.name == name
    assert kind.tables[0] == kind.measure
    for each in filter(None, (kind.draw, kind.sketch, kind.sketch_change)):
        assert callable(resolve_name(each)), each
    assert kind.sketch or not kind.sketch_change
    if kind.claims:
        assert isinstance(resolve_name(kind.claims), Evidence)


def test_kinds_of_figures_have_one_room_each() -> None:
    declared = [kind for name in registry.names() for kind in registry.declared(name).figures]
    assert [kind for kind, count in Counter(declared).items() if count > 1] == []


def test_a_measure_that_is_not_there_is_refused() -> None:
    said = refusal(registry.declared, "fourrier")
    assert said == "There is no measure 'fourrier'. Did you mean 'fourier'?"


def test_no_measure_has_the_name_of_a_folder_or_of_an_input_beside_tables() -> None:
    """Else two rules make one file, or a figure takes a file of the style for its table."""
    rules = "".join(file.read_text() for file in (ROOT / "rules").glob("*.smk"))
    folders = {*re.findall(r'"<results>/\{study\}/(\w+)/', rules)}
    inputs = re.findall(r"\n    input:\n((?: {8}.*\n)+)", rules)
    named = [re.findall(r"^ {8}(\w+)=", each, re.MULTILINE) for each in inputs if "unpack(" in each]
    beside = {name for names in named for name in names}
    assert {"passes", "style"} <= folders | beside
    assert folders | beside <= registry.TAKEN
