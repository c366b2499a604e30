import contextlib
import re
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.checkpoints import saved
from tests.helpers.networks import FAMILIES, build_empty_mini
from tests.helpers.refusals import refusal
from tests.security import fuzz
from tests.security.contained import check_sentence, refusal_or_none
from tests.security.fuzz import Reading, by_seed
from tests.security.targets import TARGETS
from vitscope.errors import VitscopeError
from vitscope.networks.checkpoints.foreign import PLAIN, WRAPPERS, read_foreign
from vitscope.networks.checkpoints.translation import (
    LAYOUTS,
    WeightLayout,
    find_layout,
    translate,
    watch_translation,
)

RUNS = 80


@pytest.mark.parametrize("name", TARGETS)
def test_whole_files_are_read_and_damaged_ones_are_read_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)

    def read() -> None:
        reading = Reading(name, tmp_path)
        by_seed(reading, len(reading.seeds), seed=1)
        assert reading.counts["read"] >= (1 if name == "converted file" else len(reading.seeds))
        by_seed(reading, RUNS, seed=1)

    assert refusal_or_none(read) is None


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=25)
@given(data=st.binary(max_size=3000))
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp() / name.replace(" ", "_")
    folder.mkdir(exist_ok=True)
    try:
        TARGETS[name].run(folder, data)
    except VitscopeError as error:
        check_sentence(str(error))


def test_the_page_says_that_every_reader_was_fuzzed_and_nothing_else_came_of_it() -> None:
    page = fuzz.PAGE.read_text(encoding="utf-8").partition(fuzz.BEGIN)[2].partition(fuzz.END)[0]
    rows = re.findall(r"^\| (.+) \| ([\d,]+) \| [\d,]+ \| [\d,]+ \| 0 \|$", page, re.MULTILINE)
    assert [name for name, _ in rows] == list(TARGETS)
    assert all(int(count.replace(",", "")) >= fuzz.RUNS for _, count in rows)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
TENSORS = st.tuples(
    st.sampled_from(sorted(PLAIN, key=str)), st.lists(st.integers(0, 3), max_size=3)
)
STATE_DICTS = st.dictionaries(NAMES, TENSORS, min_size=1, max_size=4)


@pytest.mark.parametrize("form", ["zip", "legacy", "safetensors"])
@settings(max_examples=40)
@given(drawn=STATE_DICTS)
def test_every_state_dict_is_read_as_it_was_saved(
    tmp_path_factory: pytest.TempPathFactory, form: str, drawn: dict[str, tuple[torch.dtype, list]]
) -> None:
    wrappers = {*WRAPPERS, "__metadata__"}
    weights = {
        name: torch.ones(shape).to(dtype)
        for name, (dtype, shape) in drawn.items()
        if name not in wrappers and not name.startswith(("module.", "_orig_mod."))
    }
    path = tmp_path_factory.getbasetemp() / "weights"
    if form == "safetensors":
        path.write_bytes(safetensors.torch.save(weights))
    else:
        torch.save(weights, path, _use_new_zipfile_serialization=form == "zip")
    if not weights:
        return
    found = read_foreign(path, "ViT").places[0].weights
    assert found.keys() == weights.keys()
    for name, tensor in weights.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


PARTS = "pools transformers layers stages downsample downsample_layers pool head norm conv dwconv "
PARTS += "pwconv1 weight bias 0 1 12 ٣ reduction fc attn_mask relative_position_index blocks "
PARTS += "encoder layer attention self features layer_scale"
KEYS = st.lists(st.sampled_from([*PARTS.split(), "", "\n", "9" * 20]), min_size=1, max_size=6).map(
    ".".join
)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
@settings(max_examples=60)
@given(extra=st.sets(KEYS, max_size=12))
def test_a_layout_loses_no_weights_and_makes_none(layout: WeightLayout, extra: set[str]) -> None:
    given_weights = {key: torch.zeros(1) for key in extra}
    with contextlib.suppress(VitscopeError):
        found, used = watch_translation(layout.translate, given_weights)
        kept = {id(t) for key, t in given_weights.items() if not re.search(layout.without, key)}
        made = {id(tensor) for tensor in found.values()} - kept
        assert {id(tensor) for tensor in found.values()} | used >= kept
        assert not made or used


@pytest.mark.parametrize("name", FAMILIES.values())
@settings(max_examples=6)
@given(extra=st.sets(KEYS, max_size=6))
def test_translation_loses_no_weights_and_makes_none(name: str, extra: set[str]) -> None:
    model = build_empty_mini(name)
    own = model.state_dict()
    given_weights = {key: torch.zeros(1) for key in extra - own.keys()} | own
    with contextlib.suppress(VitscopeError):
        found = translate(given_weights, model)
        assert all(found.weights[key] is tensor for key, tensor in own.items())
        there = {id(tensor) for tensor in found.weights.values()}
        there |= {id(given_weights[key]) for key in found.left_out}
        assert there == {id(tensor) for tensor in given_weights.values()}


def test_a_name_that_two_weights_would_get_is_refused() -> None:
    weights = {
        "pools.0.conv.weight": torch.zeros(1),
        "transformers.0.pool.conv.weight": torch.ones(1),
    }
    assert "which are the same weights" in refusal(find_layout(weights).translate, weights)


def test_prefixes_do_not_merge_two_weights(tmp_path: Path) -> None:
    twice = {"module.a": torch.zeros(1), "module.module.a": torch.ones(1)}
    found = read_foreign(saved(tmp_path / "a.pth", twice), "ViT").places[0].weights
    assert set(found) == {"a", "module.a"}
