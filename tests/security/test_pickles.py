import copyreg
import io
import pickle
import struct
import tarfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import torch

from tests.helpers.archives import repacked, tar_of
from tests.helpers.refusals import refusal
from tests.helpers.sources import open_path
from tests.security.attacks import HARMFUL, called, named, program, raw, shell, text
from tests.security.bombs import in_memory
from tests.security.contained import check_sentence, refusal_of, refusal_or_none
from vitscope.networks.checkpoints.foreign import read_foreign

Wrap = Callable[[Path, bytes], Callable[[], object]]


def in_zip(folder: Path, pickled: bytes) -> Callable[[], object]:
    """Return what reads a pickle as the checkpoint of today's torch.save."""
    # With the storage "0", of two numbers, that a pickle may name.
    empty = in_memory(partial(torch.save, {"weight": torch.zeros(2)}))
    path = repacked(folder / "zip.pth", empty, pickled)
    return lambda: read_foreign(path, "ViT")


def in_legacy(folder: Path, pickled: bytes) -> Callable[[], object]:
    """Return what reads a pickle as the checkpoint of an older torch.save."""
    before = (torch.serialization.MAGIC_NUMBER, torch.serialization.PROTOCOL_VERSION, {})
    path = folder / "legacy.pth"
    data = b"".join(pickle.dumps(value, 2) for value in before) + pickled + pickle.dumps([], 2)
    path.write_bytes(data)
    return lambda: read_foreign(path, "ViT")


def in_tar(folder: Path, pickled: bytes) -> Callable[[], object]:
    """Return what reads a pickle as the checkpoint of the first torch.save."""
    path = folder / "oldest.tar"
    with tarfile.open(path, "w") as tar:
        for name in ("storages", "tensors", "pickle"):
            member = tarfile.TarInfo(name)
            member.size = len(pickled)
            tar.addfile(member, io.BytesIO(pickled))
    return lambda: read_foreign(path, "ViT")


def bare(folder: Path, pickled: bytes) -> Callable[[], object]:
    """Return what reads a pickle as a checkpoint that is nothing else."""
    path = folder / "bare.pkl"
    path.write_bytes(pickled)
    return lambda: read_foreign(path, "ViT")


def in_cifar(folder: Path, pickled: bytes) -> Callable[[], object]:
    """Return what reads a pickle as the images of CIFAR-100; its archive is not the published."""
    path = folder / "cifar-100-python.tar.gz"
    path.write_bytes(tar_of("cifar-100-python", {"meta": pickled, "test": pickled}))
    return lambda: open_path("cifar100", path, "test")


PLACES: list[Wrap] = [in_zip, in_legacy, in_tar, bare]


def refused(read: Callable[[], object]) -> str:
    return check_sentence(refusal(read))


@pytest.mark.parametrize("place", [*PLACES, in_cifar])
@pytest.mark.parametrize("name", HARMFUL)
def test_what_would_run_is_refused(tmp_path: Path, name: str, place: Wrap) -> None:
    canary = tmp_path / "ran"
    refused(place(tmp_path, HARMFUL[name](canary)))
    assert not canary.exists()


@pytest.mark.parametrize("name", HARMFUL)
def test_every_attack_is_real(tmp_path: Path, name: str) -> None:
    canary = tmp_path / "ran"
    pickled = HARMFUL[name](canary)
    assert not canary.exists()
    # Some end in an error after the harm is done.
    with suppress(TypeError, AttributeError):
        pickle.loads(pickled)
    assert canary.exists()


@pytest.fixture
def extension() -> Iterator[int]:
    copyreg.add_extension("os", "system", 240)
    yield 240
    copyreg.remove_extension("os", "system", 240)


@pytest.mark.parametrize("place", PLACES)
def test_names_by_their_number_are_refused(tmp_path: Path, place: Wrap, extension: int) -> None:
    canary = tmp_path / "ran"
    for opcode, number in ((b"\x82", "<B"), (b"\x83", "<H"), (b"\x84", "<i")):
        pickled = program(called(opcode + struct.pack(number, extension), text(shell(canary))))
        refused(place(tmp_path, pickled))
        assert not canary.exists()
    pickle.loads(pickled)
    assert canary.exists()


def storage(key: str = "0", kind: str = "FloatStorage", count: bytes = b"K\x02") -> bytes:
    """BINPERSID: what torch.save writes in place of the bytes of a tensor."""
    return b"(" + text("storage") + named("torch", kind) + text(key) + text("cpu") + count + b"tQ"


def tensor(
    stored: bytes = storage(),
    offset: bytes = b"K\x00",
    size: bytes = b"K\x02\x85",
    stride: bytes = b"K\x01\x85",
) -> bytes:
    rebuild = named("torch._utils", "_rebuild_tensor_v2")
    return called(rebuild, stored, offset, size, stride, b"\x89", b"}")


def number(value: int) -> bytes:
    data = value.to_bytes(9, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


HUGE = number(1 << 60)
ODD = {
    "sizes beyond the storage": tensor(size=b"K\x10\x85"),
    "strides beyond the storage": tensor(stride=HUGE + b"\x85"),
    "an offset beyond the storage": tensor(offset=HUGE),
    "a negative size": tensor(size=number(-2) + b"\x85"),
    "a storage of 2^60 numbers": tensor(storage(count=HUGE)),
    "a storage that is not there": tensor(storage("9")),
    "a storage outside of the archive": tensor(storage("../../../../etc/passwd")),
    "a storage of objects": tensor(storage(kind="Tensor")),
    "a persistent id that is a command": text("touch") + b"Q",
    "a parameter of text": called(
        named("torch._utils", "_rebuild_parameter"), text("x"), b"\x88", b"}"
    ),
    "a sparse tensor with wrong indices": called(
        named("torch._utils", "_rebuild_sparse_tensor"),
        named("torch", "sparse_coo"),
        b"(" + text("x") + text("y") + b"(K\x01tt",
    ),
    "a dictionary that is no dictionary": called(named("collections", "OrderedDict"), b"K\x03"),
    "a namespace with another class": called(named("argparse", "Namespace"))
    + b"}"
    + text("__class__")
    + named("os", "system")
    + b"sb",
    "an array of NumPy": called(
        named("numpy.core.multiarray", "_reconstruct"),
        named("numpy", "ndarray"),
        b"K\x00\x85",
        raw(b"b"),
    ),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ODD)
def test_what_is_no_tensor_is_refused(tmp_path: Path, name: str, place: Wrap) -> None:
    pickled = program(b"}" + text("weight") + ODD[name] + b"s")
    refusal_of(place(tmp_path, pickled))


GREEDY = {
    "a place in the memo beyond its end": lambda: program(b"}r" + struct.pack("<I", 0xFFFFFFF0)),
    "bytes that are not there": lambda: program(b"\x8e" + struct.pack("<Q", 1 << 40), 4),
    "text that is not there": lambda: program(b"\x8d" + struct.pack("<Q", 1 << 40), 4),
    "a bytearray that is not there": lambda: program(b"\x96" + struct.pack("<Q", 1 << 40), 5),
    "a number that is not there": lambda: program(b"\x8b" + struct.pack("<i", 0x7FFFFFFF)),
    "a number of negative length": lambda: program(b"\x8b" + struct.pack("<i", -5)),
    "a frame that is not there": lambda: program(b"\x95" + struct.pack("<Q", 1 << 62), 4),
    "a number of many digits": lambda: b"I" + b"9" * 100_000 + b"\n.",
    "lists in lists": lambda: program(b"]" * 100_000 + b"a" * 99_999),
    "tuples in tuples": lambda: program(b")" + b"\x85" * 100_000),
    "marks and nothing else": lambda: program(b"(" * 100_000),
    "a list of itself": lambda: program(b"]q\x00h\x00a"),
    "nothing at all": lambda: b"",
    "a stop alone": lambda: b".",
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", GREEDY)
def test_what_would_fill_the_memory_is_refused(tmp_path: Path, name: str, place: Wrap) -> None:
    refusal_of(place(tmp_path, GREEDY[name]()))


def test_the_storage_that_odd_tensors_name_is_there(tmp_path: Path) -> None:
    pickled = program(b"}" + text("weight") + tensor() + b"s", 2)
    assert refusal_or_none(in_zip(tmp_path, pickled)) is None


def test_a_tensor_of_one_number_that_says_it_is_many_is_refused_before_it_is_filled(
    tmp_path: Path,
) -> None:
    path = tmp_path / "wide.pth"
    torch.save({"weight": torch.ones(1).expand(1 << 45)}, path)
    assert "more than a file of its size" in refusal_of(lambda: read_foreign(path, "ViT"))
