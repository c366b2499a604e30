import hashlib
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import vitscope
from tests.helpers.jobs import text_of_record
from tests.helpers.processes import output_of
from vitscope.files.tensors import TensorWriter
from vitscope.jobs.provenance import PACKAGES

SHARED = [0.5, 0.5, 0.5]
SETTINGS = {
    "title": "Größe, a title: with a colon",
    "models": {"a": {"mean": SHARED}, "b": {"mean": SHARED}},
    "analysis": {"seed": 3, "bootstrap": {"seed": 4}},
}


def tensor_file(path: Path, metadata: dict[str, str]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    with TensorWriter(path, {"x": ("F32", (1,))}, metadata) as writer:
        writer.write("x", 0, np.ones(1, np.float32))
    return str(path)


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    return output_of("git", "-C", folder, *identity, *arguments).strip()


def record(folder: Path, **inputs: Any) -> dict[str, Any]:
    return yaml.safe_load(text_of_record(folder, SETTINGS, **inputs))


def test_which_class_has_which_number(tmp_path: Path) -> None:
    named = tensor_file(tmp_path / "own" / "test.st", {"classes": '["0", "ant", "2", "b\\u00e9e"]'})
    unnamed = tensor_file(tmp_path / "own" / "train.st", {"classes": '["0", "1"]'})
    data = record(tmp_path, data=[named, unnamed])["data"]
    assert data["own/test"]["classes"] == {1: "ant", 3: "bée"}
    assert data["own/train"]["classes"] == '["0", "1"]'


def test_settings_that_are_shared_are_written_in_full(tmp_path: Path) -> None:
    text = text_of_record(tmp_path, SETTINGS)
    assert "&" not in text
    assert "*" not in text
    assert "Größe" in text


def test_the_study_its_seeds_and_versions(tmp_path: Path) -> None:
    made = record(tmp_path)
    assert made["study"] == {"name": "tiny", **SETTINGS}
    assert made["vitscope"] == vitscope.__version__
    assert made["python"] == platform.python_version()
    assert made["packages"] == {package: version(package) for package in PACKAGES}


def test_a_package_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vitscope.jobs.provenance.PACKAGES", ("no-such-package",))
    assert record(tmp_path)["packages"] == {"no-such-package": None}


def test_digests_and_origins(tmp_path: Path) -> None:
    checkpoint = tensor_file(tmp_path / "checkpoints" / "vit.safetensors", {"source_sha256": "ab"})
    data = tensor_file(tmp_path / "data" / "shapes32" / "test.safetensors", {"split": "test"})
    (tmp_path / "claims.parquet").write_bytes(b"table")
    claims = str(tmp_path / "claims.parquet")
    made = record(tmp_path, checkpoints=[checkpoint], data=[data], claims=claims)

    def sha256(path: str) -> str:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()

    assert made["checkpoints"] == {"vit": {"sha256": sha256(checkpoint), "source_sha256": "ab"}}
    assert made["data"] == {"shapes32/test": {"sha256": sha256(data), "split": "test"}}
    assert made["tables"] == {"claims": {"sha256": hashlib.sha256(b"table").hexdigest()}}


def test_the_commit_and_whether_files_differ_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vitscope.jobs.provenance.ROOT", tmp_path)
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("1", encoding="utf-8")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-q", "-m", "first")
    git(tmp_path, "tag", "v9")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert record(tmp_path)["commit"] == commit
    (tmp_path / "file").write_text("2", encoding="utf-8")
    assert record(tmp_path)["commit"] == f"{commit}-dirty"


def test_without_a_repository_or_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vitscope.jobs.provenance.ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert record(tmp_path)["commit"] is None
    monkeypatch.setenv("PATH", "")
    assert record(tmp_path)["commit"] is None
