import io
import json
import re
import socket
import threading
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from html.parser import HTMLParser
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import safetensors.torch
import torch
import yaml
from docutils.core import publish_parts
from PIL import Image

from tests.helpers.archives import repacked, tar_of
from tests.helpers.networks import FAMILIES, build_empty_mini
from tests.helpers.sources import open_path, read_all
from tests.runs.copies import SETTINGS
from tests.security import bombs
from tests.security.bombs import in_memory
from vitscope.corruptions import corrupted_images
from vitscope.errors import VitscopeError
from vitscope.files.pages import Section, as_inert, as_rst, page_as_html, page_as_markdown
from vitscope.files.tensors import TensorFile, TensorWriter
from vitscope.networks.checkpoints.foreign import read_foreign
from vitscope.networks.checkpoints.translation import translate
from vitscope.progress import Say
from vitscope.studies.loading import load_study
from vitscope.video.frames import BrokenOffError, open_animation_frames
from vitscope.web import lockfile
from vitscope.web.downloads import fetch


@dataclass(frozen=True)
class Target:
    """A reader: the name that its file must have, whole files, and the reader itself.

    `bombs` are files that it refuses, and that are damaged as whole ones are.
    """

    file: str
    seeds: Callable[[], list[bytes]]
    read: Callable[[Path], object]
    bombs: Callable[[], list[bytes]] = list

    def run(self, folder: Path, data: bytes) -> None:
        path = folder / self.file
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        self.read(path)


def _studies() -> list[bytes]:
    study = json.loads(json.dumps(SETTINGS))
    for name in study["models"]:
        study["models"][name]["checkpoint"] = {"url": f"https://host/{name}.pth?a=b"}
    return [yaml.safe_dump(study).encode(), yaml.safe_dump(study, default_flow_style=True).encode()]


PIXELS = np.arange(4 * 3072, dtype=np.uint32).astype(np.uint8).reshape(4, 3072)


def _cifar(mode: str) -> bytes:
    rows = np.insert(PIXELS, [0, 0], [[0, label] for label in (0, 1, 1, 0)], 1)
    batch = {"fine_label_names.txt": b"apple\nbear\n", "test.bin": rows.tobytes()}
    return tar_of("cifar-100-binary", batch, mode)


def _npz() -> list[bytes]:
    arrays = {"images": PIXELS.reshape(4, 32, 32, 3), "labels": np.arange(4)}
    return [in_memory(partial(save, **arrays)) for save in (np.savez, np.savez_compressed)]


def _pictures() -> list[bytes]:
    image = Image.fromarray(PIXELS[0].reshape(32, 32, 3))
    kinds = ("png", "jpeg", "bmp", "gif", "tiff", "webp", "ppm")
    return [in_memory(partial(image.save, format=kind)) for kind in kinds]


def _animations() -> list[bytes]:
    # Frames that are the same are none of their own.
    moved = (np.roll(each.reshape(32, 32, 3), number, 1) for number, each in enumerate(PIXELS))
    frames = [*map(Image.fromarray, moved)]
    clear = Image.fromarray(PIXELS[0].reshape(32, 24, 4), "RGBA")

    def saved(kind: str, images: list[Image.Image], **options: bool) -> bytes:
        options |= {"save_all": True, "append_images": images[1:], "duration": 40}
        return in_memory(partial(images[0].save, format=kind, **options))

    seeds = [saved(kind, frames) for kind in ("gif", "png", "webp")]
    return [*seeds, saved("webp", frames, lossless=True), saved("webp", [clear, clear.rotate(90)])]


def _read_animation_frames(path: Path) -> None:
    found = open_animation_frames(path)
    if found is None:
        raise VitscopeError("It is no picture, and ffmpeg reads it.")
    try:
        for _ in islice(found, 20):
            pass
    except BrokenOffError as error:
        raise VitscopeError(f"{error}: the frames before that are kept.") from error


def _parquet() -> list[bytes]:
    table = pa.table({"img": [{"bytes": data} for data in _pictures()], "label": range(7)})
    methods = ("none", "snappy", "zstd")
    return [in_memory(partial(pq.write_table, table, compression=each)) for each in methods]


@cache
def _weights() -> dict[str, torch.Tensor]:
    return {"fc.weight": torch.arange(6.0).reshape(2, 3), "fc.bias": torch.ones(2).half()}


def _torch(zipped: bool) -> list[bytes]:
    wrapped = {"state_dict": _weights(), "epoch": 3, "lr": [0.1, None, True]}
    return [in_memory(partial(torch.save, wrapped, _use_new_zipfile_serialization=zipped))]


def _torch_pickle() -> list[bytes]:
    with zipfile.ZipFile(io.BytesIO(_torch(zipped=True)[0])) as archive:
        return [archive.read("archive/data.pkl")]


def _read_torch_pickle(path: Path) -> None:
    repacked(path, _torch(zipped=True)[0], path.read_bytes())
    read_foreign(path, "ViT")


def _tensorfile() -> list[bytes]:
    path = Path("seed.safetensors")
    with TensorWriter(path, {"a": ("F32", (2, 3)), "b": ("I64", ())}, {"key": "value"}) as writer:
        writer.write("a", 0, np.zeros((2, 3), np.float32))
        writer.write("b", 0, np.array(3))
    data = path.read_bytes()
    path.unlink()
    return [data, safetensors.torch.save(_weights(), {"key": "value"})]


def _read_tensorfile(path: Path) -> None:
    file = TensorFile(path)
    assert all(isinstance(value, str) for value in file.metadata.values())
    for name in file.names:
        file.array(name).sum()


def _official() -> list[bytes]:
    array = in_memory(lambda file: np.save(file, PIXELS.reshape(4, 32, 32, 3)))
    return [tar_of("CIFAR-100-C", {"fog.npy": array}, "w")]


def _read_keys(path: Path) -> None:
    """Give tensors the names that the lines of a file are, for a network of every family."""
    names = path.read_bytes().decode("utf-8", "surrogateescape").split("\n")
    for model in _networks():
        translate({name: torch.zeros(1) for name in names}, model)


@cache
def _networks() -> list[torch.nn.Module]:
    return [build_empty_mini(name) for name in FAMILIES.values()]


def _keys() -> list[bytes]:
    own = ["\n".join(model.state_dict()).encode() for model in _networks()]
    foreign = ["pools.0.conv.weight", "downsample_layers.0.0.weight", "stages.0.0.pwconv1.weight"]
    foreign += ["layers.0.downsample.reduction.weight", "head.weight"]
    return [*own, "\n".join(foreign).encode()]


def _written(*writers: Callable[[Path], None]) -> list[bytes]:
    path, found = Path("bomb"), []
    for write in writers:
        write(path)
        found.append(path.read_bytes())
        path.unlink()
    return found


def _texts() -> list[bytes]:
    return [
        b"How vision transformers work",
        b"<script>alert(1)<img src=x onerror=alert(1)>",
        b"a | b\\ [c](d) `e` =1+1",
        "Ω漢 naïve (5 %)".encode(),
    ]


class _Elements(HTMLParser):
    """Refuses elements that only a text of a study could have brought."""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert tag not in {"script", "img", "a", "iframe"}, tag


def _read_text(path: Path) -> None:
    """Take a text for the title and the label of a study, and show it as pages show it."""
    study = json.loads(json.dumps(SETTINGS))
    text = path.read_bytes().decode("utf-8", "replace")
    study["title"] = study["models"]["vit"]["label"] = text
    for model in study["models"].values():
        model["checkpoint"] = {"path": "a.pth"}
    path.write_text(yaml.safe_dump(study), encoding="utf-8")
    label = load_study(path).models["vit"].label
    section = Section(label, label, (label,), [(label,)])
    pages = [show(label, label, [section]) for show in (page_as_html, page_as_markdown)]
    # Snakemake makes captions of its report of reStructuredText.
    for page in (*pages, publish_parts(as_rst(label), writer="html")["html_body"]):
        parser = _Elements()
        parser.feed(page)
        parser.close()
    assert len(pages[1].splitlines()) == 11 or not label.strip()
    # Snakemake puts its labels into scripts and elements of its report.
    assert not re.search("<[^\u2060]", as_inert(label))


ANSWERS = (
    '200 OK\r\nContent-Length: 8\r\nETag: "one"\r\n\r\n\0weights',
    "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n\0weights\r\n0\r\n\r\n",
    "200 OK\r\nContent-Type: application/zip\r\n\r\n\0weights",
)
ODD_ANSWERS = (
    "503 Busy\r\nRetry-After: Mon, 99999999999 Jan 2026 00:00:00 GMT\r\n\r\n",
    '206 Partial Content\r\nContent-Range: bytes 0-6/*\r\nETag: "one"\r\n\r\nweights',
    '200 OK\r\nContent-Length: \xb2\r\n\r\n{"error": 1}',
    "302 Found\r\nLocation: //[::1\r\n\r\n",
)


def _answers(texts: Iterable[str]) -> list[bytes]:
    return [f"HTTP/1.1 {text}".encode("latin-1") for text in texts]


def _read_answer(path: Path) -> None:
    """Download from a server that gives these bytes as its whole answer."""
    answer, target = path.read_bytes(), path.with_name("target")

    def serve(server: socket.socket) -> None:
        with suppress(OSError), server.accept()[0] as connection:
            connection.recv(4096)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=[server], daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/w"
        quiet: Say = lambda _: None  # noqa: E731
        try:
            fetch(url, target, label="ViT", attempts=1, timeout=1.0, say=quiet)
        finally:
            thread.join()
            assert {each.name for each in path.parent.iterdir()} <= {path.name, target.name}
            target.unlink(missing_ok=True)


def _lock() -> list[bytes]:
    entry = {"sha256": "a" * 64, "bytes": 10}
    return [yaml.safe_dump({"https://host/a": entry, "https://host/b": entry}).encode()]


TARGETS: dict[str, Target] = {
    "study": Target("own.yaml", _studies, load_study),
    "text of a study": Target(
        "text/own.yaml", _texts, _read_text, lambda: [b"</script><script>", "\u202egnp".encode()]
    ),
    "lock file": Target(
        "own.lock.yaml",
        _lock,
        lambda path: lockfile.find_lock_entry(path, "https://host/a"),
        lambda: [
            b"a0: &a {x: {sha256: b, bytes: .inf}}\na1: &b {<<: [*a, *a]}\na2: {<<: [*b, *b]}"
        ],
    ),
    "answer of a server": Target(
        "answer/a", lambda: _answers(ANSWERS), _read_answer, lambda: _answers(ODD_ANSWERS)
    ),
    "CIFAR archive": Target(
        "a.tar.gz",
        lambda: [_cifar("w"), _cifar("w:gz")],
        lambda path: read_all(open_path("cifar100", path)),
        lambda: [bombs.sparse([f"cifar-100-binary/{name}" for name in ("test.bin", "train.bin")])],
    ),
    "CIFAR-C archive": Target(
        "a.tar",
        _official,
        lambda path: corrupted_images._map_corrupted_member(path, "fog.npy").sum(),
    ),
    "npz": Target("a.npz", _npz, bombs.source("npz"), lambda: _written(bombs.lying_npz)),
    "parquet": Target(
        "a.parquet",
        _parquet,
        bombs.source("parquet"),
        lambda: _written(partial(bombs.lying_parquet, size=1 << 20)),
    ),
    "picture": Target(
        "pictures/a.png", _pictures, lambda path: read_all(open_path("folder", path.parent))
    ),
    "animated picture": Target("a", _animations, _read_animation_frames),
    "checkpoint, zip": Target(
        "a.pth",
        lambda: _torch(zipped=True),
        bombs.read_vit,
        lambda: _written(bombs.strides, partial(bombs.unlisted_zip, size=1000)),
    ),
    "checkpoint, pickle in a zip": Target("a.pth", _torch_pickle, _read_torch_pickle),
    "checkpoint, legacy": Target("a.pth", lambda: _torch(zipped=False), bombs.read_vit),
    "checkpoint, safetensors": Target(
        "a.safetensors",
        lambda: [safetensors.torch.save(_weights(), {"key": "value"})],
        bombs.read_vit,
        lambda: _written(partial(bombs.many_names, count=1000)),
    ),
    "converted file": Target("a.safetensors", _tensorfile, _read_tensorfile),
    "keys of every family": Target("keys", _keys, _read_keys),
}
