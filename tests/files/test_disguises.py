"""What stands where a file was meant."""

from pathlib import Path

import pytest

from vitscope.files.disguises import disguise_of


@pytest.mark.parametrize(
    ("text", "disguise"),
    [
        ("\n <!DOCTYPE HTML><p>", "a web page"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0", "a Git LFS pointer"),
        ("version 2", None),
        ("", None),
    ],
)
def test_a_file_is_known_by_how_it_begins(tmp_path: Path, text: str, disguise: str | None) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    assert disguise_of(path) == disguise
