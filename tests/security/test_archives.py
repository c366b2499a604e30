import io
import multiprocessing
import os
from pathlib import Path

import pytest
from PIL import Image

from tests.helpers.refusals import refusal
from tests.helpers.sources import open_path, read_all
from tests.helpers.tiers import some_of
from tests.security.bombs import BOMBS, table
from tests.security.contained import check_sentence, refusal_of

# Bombs that take seconds to write.
LARGE = {"labels without end in a pickle", "a footer that lies", "a cell that is repeated"}
LARGE |= {"labels that expand"}


POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n%%EOF\n"


def test_pillow_would_run_ghostscript_and_is_not_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary, programs, pictures = tmp_path / "ran", tmp_path / "bin", tmp_path / "pictures"
    programs.mkdir()
    pictures.mkdir()
    (programs / "gs").write_text(f"#!/bin/sh\ntouch {canary}\n")
    (programs / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    (pictures / "a.jpg").write_bytes(POSTSCRIPT)
    check_sentence(refusal(lambda: read_all(open_path("folder", pictures))))
    cells = table(tmp_path / "a.parquet", image=[{"bytes": POSTSCRIPT}], label=[0])
    assert "is not a readable image" in refusal(read_all, open_path("parquet", cells))
    assert not canary.exists()
    # The danger is real: Pillow runs it where all formats are allowed.
    with Image.open(io.BytesIO(POSTSCRIPT)) as image, pytest.raises(Exception):  # noqa: B017, PT011
        image.load()
    assert canary.exists()


def test_a_folder_is_read_and_not_written_whatever_its_names_are(tmp_path: Path) -> None:
    places = [b"plain", b"with space", b"$(touch ran)", b"new\nline", b"\xff\xfe", b"-rf", b"{x}"]
    for name in places:
        folder = tmp_path / os.fsdecode(name)
        folder.mkdir()
        Image.new("RGB", (8, 8)).save(folder / "a.png")
    os.mkfifo(tmp_path / "plain" / "pipe.png")
    (tmp_path / "plain" / "loop.png").symlink_to(tmp_path / "plain" / "loop.png")
    source = open_path("folder", tmp_path)
    read_all(source)
    assert len(source) == len(places)
    assert sorted(map(os.fsencode, (file.name for file in tmp_path.iterdir()))) == sorted(places)


@pytest.mark.parametrize("name", some_of(BOMBS, *BOMBS.keys() - LARGE))
def test_what_holds_more_than_it_says(tmp_path: Path, name: str) -> None:
    bomb, path = BOMBS[name], tmp_path / "a"
    # Elsewhere: some take memory to write, too.
    writing = multiprocessing.get_context("fork").Process(target=bomb.write, args=[path])
    writing.start()
    writing.join()
    assert writing.exitcode == 0
    assert bomb.says in refusal_of(lambda: bomb.read(path))
    assert [file.name for file in tmp_path.iterdir()] == ["a"]
