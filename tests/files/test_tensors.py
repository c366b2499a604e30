import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save

from tests.helpers.processes import python
from tests.helpers.refusals import refusal
from vitscope.errors import VitscopeError
from vitscope.files.tensors import DTYPES, TensorFile, TensorWriter, checksum
from vitscope.package_data import ROOT

TORCH = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
TORCH |= {"I64": torch.int64, "I32": torch.int32, "U8": torch.uint8, "BOOL": torch.bool}


def random_array(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).integers(0, 2 if dtype == "BOOL" else 100, shape)
    return values.astype(DTYPES[dtype])


def write(path: Path, arrays: dict[str, tuple[str, np.ndarray]], metadata=None, step=3) -> None:
    """Write arrays a few rows at a time, the last rows first."""
    tensors = {name: (dtype, array.shape) for name, (dtype, array) in arrays.items()}
    with TensorWriter(path, tensors, metadata or {}) as writer:
        for name, (_, array) in arrays.items():
            if array.ndim == 0:
                writer.write(name, 0, array)
                continue
            for first in reversed(range(0, len(array), step)):
                writer.write(name, first, array[first : first + step])


shapes = st.lists(st.integers(0, 5), max_size=4).map(tuple)
contents = st.dictionaries(
    st.text(min_size=1, max_size=8).filter(lambda name: name != "__metadata__"),
    st.tuples(st.sampled_from(sorted(DTYPES)), shapes, st.integers(0, 99)),
    max_size=4,
)


@settings(max_examples=60)
@given(contents, st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3))
def test_the_library_and_this_reader_read_what_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    content: dict[str, tuple[str, tuple[int, ...], int]],
    metadata: dict[str, str],
) -> None:
    path = tmp_path_factory.mktemp("written") / "file.safetensors"
    arrays = {name: (dtype, random_array(dtype, *more)) for name, (dtype, *more) in content.items()}
    write(path, arrays, metadata)

    theirs = load_file(path)
    ours = TensorFile(path)
    assert set(theirs) == set(arrays)
    assert ours.names == list(arrays)
    assert ours.metadata == metadata
    with safe_open(path, "np") as file:
        assert {k: v for k, v in file.metadata().items() if k != "checksums"} == metadata
    for name, (dtype, array) in arrays.items():
        assert theirs[name].dtype == TORCH[dtype]
        assert theirs[name].shape == array.shape
        raw = theirs[name].reshape(-1).view(torch.uint8)
        assert raw.numpy().tobytes() == array.tobytes()
        assert ours.dtype(name) == dtype
        np.testing.assert_array_equal(ours.array(name), array, strict=True)


def test_same_content_same_bytes_in_another_process(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np\n"
        "from vitscope.files.tensors import TensorWriter\n"
        "metadata = {key: key for key in {'a', 'b', 'c', 'd', 'e'}}\n"
        "with TensorWriter(sys.argv[1], {'x': ('F32', (2, 3))}, metadata) as writer:\n"
        "    writer.write('x', 0, np.ones((2, 3), np.float32))\n"
    )
    for seed in "01":
        environment = os.environ | {"PYTHONHASHSEED": seed}
        python(code, tmp_path / seed, env=environment, cwd=ROOT)
    assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes()


@pytest.mark.parametrize(
    ("first", "rows"),
    [
        (0, np.ones((2, 3), np.float64)),
        (0, np.ones((2, 4), np.float32)),
        (3, np.ones((2, 3), np.float32)),
    ],
)
def test_rows_that_do_not_fit(tmp_path: Path, first: int, rows: np.ndarray) -> None:
    with (
        pytest.raises(ValueError, match=r"^x: "),
        TensorWriter(tmp_path / "file", {"x": ("F32", (4, 3))}, {}) as writer,
    ):
        writer.write("x", first, rows)
    assert list(tmp_path.iterdir()) == []
    write(tmp_path / "file", {"x": ("F32", np.zeros((4, 3), np.float32))})
    with pytest.raises(ValueError, match=r"^x: "):
        TensorFile(tmp_path / "file").read("x", first, rows)


def framed(header: object, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def entry(dtype: object = "F32", shape: object = (1,), offsets: object = (0, 4)) -> object:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


FOREIGN = {
    "empty": b"",
    "without checksums": save({"a": torch.randn(3, 4)}, {"source": "library"}),
    "text": b"<!DOCTYPE html><html>not here</html>",
    "no json": framed(b"{nonsense"),
    "nested": framed(b"[" * 200_000),
    "entry": framed({"x": 5}),
    "no shape": framed({"x": {"dtype": "F32", "data_offsets": [0, 4]}}, b"\0" * 4),
    "unknown type": framed({"x": entry(dtype="F8_E4M3")}, b"\0" * 4),
    "negative": framed({"x": entry(shape=(-1, -1))}),
    "overlapping": framed({"a": entry(), "b": entry(offsets=(2, 6))}, b"\0" * 6),
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN.keys())
def test_foreign_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert refusal(TensorFile, path) == (
        f"{path} is not a safetensors file of vitscope: delete it and run again."
    )


def test_files_of_another_size_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(path, {"x": ("F32", np.ones((100, 3), np.float32))})
    whole = path.read_bytes()
    for content in (whole[:-1], whole[:-1200], whole + b"\0"):
        path.write_bytes(content)
        assert refusal(TensorFile, path) == (
            f"{path} is damaged: it has {len(content)} bytes and should have {len(whole)}; "
            "delete it and run again."
        )


def opened_and_verified(path: Path) -> TensorFile:
    file = TensorFile(path)
    file.verify()
    return file


@settings(max_examples=30)
@given(contents, st.integers(1, 7), st.integers(1, 7), st.data())
def test_any_pieces_are_checked_alike(
    tmp_path_factory: pytest.TempPathFactory, content, written, read, data
) -> None:
    path = tmp_path_factory.mktemp("pieces") / "file"
    arrays = {name: (dtype, random_array(dtype, *more)) for name, (dtype, *more) in content.items()}
    write(path, arrays, step=written)
    file = opened_and_verified(path)
    for name, (_, array) in arrays.items():
        if array.ndim:
            firsts = data.draw(st.permutations(range(0, len(array), read)))
            parts = [checksum(np.ascontiguousarray(array[f : f + read]), f) for f in firsts]
            TensorFile(path).check(name, sum(parts))
            np.testing.assert_array_equal(file.array(name), array)


def test_every_bit_that_changes_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    arrays = {"x": ("F32", random_array("F32", (9, 3), 0)), "label": ("I64", np.arange(9))}
    write(path, arrays, {"a": "b"})
    whole = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for position, byte in enumerate(whole):
            for bit in range(8):
                os.pwrite(file.fileno(), bytes([byte ^ 1 << bit]), position)
                said = refusal(opened_and_verified, path)
                assert said.startswith(str(path))
                assert said.endswith("delete it and run again.")
            os.pwrite(file.fileno(), bytes([byte]), position)
    assert path.read_bytes() == whole


@settings(max_examples=100)
@given(st.integers(0, 8), st.integers(0, 8), st.integers(0, 2**32))
def test_rows_that_changed_places_are_noticed(
    tmp_path_factory: pytest.TempPathFactory, one: int, other: int, seed: int
) -> None:
    path = tmp_path_factory.mktemp("places") / "file"
    array = np.random.default_rng(seed).integers(0, 2**16, (9, 12), np.uint16)
    write(path, {"x": ("BF16", array)})
    whole = path.read_bytes()
    rows = array.copy()
    rows[[one, other]] = rows[[other, one]]
    assert whole.endswith(array.tobytes())
    path.write_bytes(whole[: -rows.nbytes] + rows.tobytes())
    if one == other:
        opened_and_verified(path)
        return
    with pytest.raises(VitscopeError, match=r"is damaged: x is not what was written; delete it"):
        TensorFile(path).array("x")


@pytest.mark.parametrize("dtype", ["F32", "BF16", "I64", "U8"])
def test_rows_are_read_into_memory_that_is_there(tmp_path: Path, dtype: str) -> None:
    arrays = {name: (dtype, random_array(dtype, (7, 3, 2), len(name))) for name in ("a", "bb")}
    write(tmp_path / "file", arrays)
    for name, (_, array) in arrays.items():
        rows = np.empty((3, 3, 2), array.dtype)
        TensorFile(tmp_path / "file").read(name, 4, rows)
        np.testing.assert_array_equal(rows, array[4:])
    # A map is read-only.
    with pytest.raises(ValueError, match="read-only"):
        TensorFile(tmp_path / "file").array("a")[0] = 2


def test_a_file_that_was_cut_or_removed_since_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(path, {"x": ("F32", np.zeros((5, 3), np.float32))})
    file, rows = TensorFile(path), np.empty((5, 3), np.float32)
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(VitscopeError, match=r"file is damaged: it ends early; delete it"):
        file.read("x", 0, rows)
    path.unlink()
    with pytest.raises(VitscopeError, match=r"Cannot read .*file: No such file"):
        file.read("x", 0, rows)
