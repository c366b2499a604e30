"""Whatever the bytes are, a reader reads them or says in one sentence why it does not."""

import contextlib
import io
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.networks import MINI, mini
from tests.security.contained import check_sentence, told_or_read
from tests.security.fuzz import Reading, by_seed
from tests.security.targets import TARGETS
from vitscope.errors import VitscopeError
from vitscope.networks.family import family_names, find_family
from vitscope.networks.foreign import PLAIN, read_foreign

RUNS = 150


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files_are_read_or_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told_or_read(lambda: by_seed(Reading(name, tmp_path), RUNS, seed=1)) is None


@pytest.mark.parametrize("name", TARGETS)
def test_whole_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    reading = Reading(name, tmp_path)
    for data in reading.seeds:
        reading(data)
    expected = 1 if name == "converted file" else len(reading.seeds)
    assert reading.counts["read"] >= expected


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=25, deadline=None)
@given(data=st.binary(max_size=3000))
def test_any_bytes_are_read_or_told(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp() / name.replace(" ", "_")
    folder.mkdir(exist_ok=True)
    try:
        TARGETS[name].run(folder, data)
    except VitscopeError as error:
        check_sentence(str(error))


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
TENSORS = st.tuples(
    st.sampled_from(sorted(PLAIN, key=str)), st.lists(st.integers(0, 3), max_size=3)
)
STATE_DICTS = st.dictionaries(NAMES, TENSORS, min_size=1, max_size=4)


@pytest.mark.parametrize("form", ["zip", "legacy", "safetensors"])
@settings(max_examples=40, deadline=None)
@given(drawn=STATE_DICTS)
def test_every_state_dict_is_read_as_it_was_saved(
    tmp_path_factory: pytest.TempPathFactory, form: str, drawn: dict[str, tuple[torch.dtype, list]]
) -> None:
    wrappers = {"state_dict_ema", "model_ema", "ema", "state_dict", "model", "__metadata__"}
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
    found = read_foreign(path, "ViT").weights
    assert found.keys() == weights.keys()
    for name, tensor in weights.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


PARTS = "pools transformers layers stages downsample downsample_layers pool head norm conv dwconv "
PARTS += "pwconv1 weight bias 0 1 12 ٣ reduction fc attn_mask relative_position_index blocks"
KEYS = st.lists(st.sampled_from([*PARTS.split(), "", "\n", "9" * 20]), min_size=1, max_size=6).map(
    ".".join
)


@pytest.mark.parametrize("family", family_names())
@settings(max_examples=60, deadline=None)
@given(extra=st.sets(KEYS, max_size=12), own=st.booleans())
def test_translation_loses_no_weights_and_makes_none(
    family: str, extra: set[str], own: bool
) -> None:
    name = next((name for name in MINI if MINI[name]["family"] == family), None)
    names = [*extra, *(mini(name)[0].state_dict() if own and name else [])]
    given_weights = {key: torch.zeros(1) for key in names}
    with contextlib.suppress(VitscopeError):
        found = find_family(family).translate(given_weights, torch.nn.Identity())
        # Swin's are computed anew, as its checkpoints differ in whether they hold them.
        dropped = (".relative_position_index", ".attn_mask") if family == "swin" else ()
        kept = {id(tensor) for key, tensor in given_weights.items() if not key.endswith(dropped)}
        assert {id(tensor) for tensor in found.values()} == (
            kept if dropped else {id(tensor) for tensor in given_weights.values()}
        )


def test_a_name_that_two_weights_would_get_is_told() -> None:
    weights = {
        "pools.0.conv.weight": torch.zeros(1),
        "transformers.0.pool.conv.weight": torch.ones(1),
    }
    with pytest.raises(VitscopeError, match="which are the same weights"):
        find_family("pit").translate(weights, torch.nn.Identity())


def test_prefixes_do_not_merge_two_weights(tmp_path: Path) -> None:
    stream = io.BytesIO()
    torch.save({"module.a": torch.zeros(1), "module.module.a": torch.ones(1)}, stream)
    (tmp_path / "a.pth").write_bytes(stream.getvalue())
    found = read_foreign(tmp_path / "a.pth", "ViT").weights
    assert set(found) == {"a", "module.a"}
