import hashlib
import platform
import re
from base64 import b64decode
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import vitscope
from tests.helpers.claims import count_variances, variances, with_resamples
from tests.helpers.processes import output_of
from vitscope.claims.tables import CLAIMS
from vitscope.files.tensors import TensorWriter
from vitscope.jobs.job import Resources
from vitscope.jobs.provenance import PACKAGES, run_record
from vitscope.jobs.reporting import introduce_study_in_report
from vitscope.networks.finding.cut_points import BLOCKS
from vitscope.package_data import ROOT, STYLE

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


def record(root: Path, **more: Any) -> dict[str, Any]:
    files: dict[str, Any] = {"checkpoints": [], "data": [], "tables": []} | more
    return yaml.safe_load(run_record("tiny", SETTINGS, **files, root=str(root)))


def test_which_class_has_which_number(tmp_path: Path) -> None:
    named = tensor_file(tmp_path / "own" / "test.st", {"classes": '["0", "ant", "2", "b\\u00e9e"]'})
    unnamed = tensor_file(tmp_path / "own" / "train.st", {"classes": '["0", "1"]'})
    data = record(tmp_path, data=[named, unnamed])["data"]
    assert data["own/test"]["classes"] == {1: "ant", 3: "bée"}
    assert data["own/train"]["classes"] == '["0", "1"]'


def test_settings_that_are_shared_are_written_in_full(tmp_path: Path) -> None:
    text = run_record("tiny", SETTINGS, [], [], [], str(tmp_path))
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
    made = record(
        tmp_path, checkpoints=[checkpoint], data=[data], tables=[str(tmp_path / "claims.parquet")]
    )

    def sha256(path: str) -> str:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()

    assert made["checkpoints"] == {"vit": {"sha256": sha256(checkpoint), "source_sha256": "ab"}}
    assert made["data"] == {"shapes32/test": {"sha256": sha256(data), "split": "test"}}
    assert made["tables"] == {"claims": {"sha256": hashlib.sha256(b"table").hexdigest()}}


def test_the_commit_and_whether_files_differ_from_it(tmp_path: Path) -> None:
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
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert record(tmp_path)["commit"] is None
    monkeypatch.setenv("PATH", "")
    assert record(tmp_path)["commit"] is None


VALUES: dict[str, Any] = {"study": "mine (a <small> one)", "description": "For tests."}
VALUES |= {"data": "shapes32, 10 classes", "labels": {"a": "ViT", "b": "Other", "c": "ViT (6 %)"}}


def test_a_study_is_introduced(tmp_path: Path) -> None:
    known = pd.read_csv(ROOT / "tests" / "expected" / "blocks.csv")
    for name, model in (("a", "vit"), ("b", "resnet"), ("c", "vit")):
        rows = known[known["model"] == model].assign(model=name)
        filled = rows.reindex(columns=[*BLOCKS.columns]).fillna(0)
        BLOCKS.write(filled.assign(norm="after" if name == "b" else None), tmp_path / name)
    # MSAs that raise the variance, by what images leave certain and by what they leave open.
    curve = variances("a", ["stem", "msa", "msa"], [8] * 3, range(3))
    counted = [count_variances(with_resamples(curve, "variance", each)) for each in (0.01, 9)]
    claims = pd.concat([each.assign(model=m) for each, m in zip(counted, "ab", strict=True)])
    alone = claims.iloc[:1].assign(claim="alone", holds="yes, without an interval")
    CLAIMS.write(pd.concat([claims, alone]), tmp_path / "claims")
    cut_points = [tmp_path / name for name in "abc"]
    inputs = {"claims": tmp_path / "claims", "cut_points": cut_points, "style": STYLE}
    introduce_study_in_report(inputs, {"page": tmp_path / "page.html"}, VALUES, Resources())
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h1>mine (a &lt;small&gt; one)</h1>" in page
    assert "<p>Images: shapes32, 10 classes.</p>" in page
    said = " ".join(page.split())
    counted = "0 hold and 1 fail in one network, 1 hold and 0 fail without an interval, 1 are open."
    assert f"3 claims: {counted}" in said
    assert "Chance may have decided 0 of 3 tested rows." in said
    pictures = re.findall(r'<img alt="(.*?)" src="data:image/svg\+xml;base64,(.*?)">', page)
    assert [label for label, _ in pictures] == [
        "Blocks of ViT, ViT (6 %), and their multiply-adds",
        "Blocks of Other (read after the norms of sums), and their multiply-adds",
    ]
    assert all("Multiply-adds" in b64decode(svg).decode() for _, svg in pictures)
