"""Downloads that users of one machine or cluster share, through Snakemake's cache."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from tests.helpers.web import Site, whole
from tests.runs.copies import SETTINGS, copy_workflow, edited, write_study
from vitscope.files.tables import OF

pytestmark = pytest.mark.nightly

NAME = "own"


class User:
    """A copy of the workflow with one model, whose weights are downloaded, or its snapshot is."""

    def __init__(self, folder: Path, model: str, url: str, snapshot: bool = False) -> None:
        folder.mkdir()

        def change(settings) -> None:
            vit = {"label": model, "checkpoint": {"url": url}, "snapshots": {"start": {"url": url}}}
            settings["models"] = {model: SETTINGS["models"]["vit"] | vit}
            settings["figures"]["fig9"] = {"kind": "feature_variance", "models": [model]}

        write_study(folder / f"{NAME}.yaml", change)
        self.workflow = copy_workflow(folder / "copy", folder)
        self.lock = folder / f"{NAME}.lock.yaml"
        results = self.workflow.root / "results" / NAME
        name = f"{model}/start" if snapshot else model
        self.download = results / "downloads" / f"{name}.checkpoint"
        kind = "snapshots" if snapshot else "checkpoints"
        self.converted = results / kind / f"{name}.safetensors"

    def convert(self, cache: Path | None) -> tuple[int, str]:
        target = str(self.converted.relative_to(self.workflow.root))
        if cache is None:
            return self.workflow.run("--cores", "1", target, default=NAME)
        environment = {"SNAKEMAKE_OUTPUT_CACHE": str(cache)}
        process = self.workflow.start(
            target, "--cores", "1", "--cache", default=NAME, extra=environment, stdout=-1
        )
        output, _ = process.communicate(timeout=600)
        return process.returncode, output


def weights_in(path: Path) -> tuple[dict[str, str], bytes]:
    """Return what a checkpoint says and has, but whose it is, which its checksum covers as well."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    said = json.loads(data[8:end])["__metadata__"]
    return {key: said[key] for key in said.keys() - {OF, "checksums"}}, data[end:]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


def test_users_share_what_they_download(tmp_path, weights, site: Site, cache):
    data = weights["vit"].read_bytes()
    url = site.at("/vit.pth", whole(data))
    one, other = User(tmp_path / "one", "vit", url), User(tmp_path / "other", "mine", url, True)
    for user in (one, other):
        code, output = user.convert(cache)
        assert code == 0, output
        assert user.download.is_symlink()
        assert user.download.read_bytes() == data
        # Whoever finds a file in the cache writes down as well what it hashed to.
        assert yaml.safe_load(user.lock.read_text())[url]["bytes"] == len(data)
    assert len(site.asked("/vit.pth")) == 1
    assert weights_in(one.converted) == weights_in(other.converted)

    # Code that changed does not take what the code before it had fetched.
    third = User(tmp_path / "third", "vit", url)
    with edited(third.workflow.root / "vitscope/web/downloads.py", lambda text: f"{text}\npass\n"):
        assert third.convert(cache)[0] == 0
    assert len(site.asked("/vit.pth")) == 2


def test_what_changed_in_the_cache_is_refused(tmp_path, weights, site: Site, cache):
    url = site.at("/vit.pth", whole(weights["vit"].read_bytes()))
    one, other = User(tmp_path / "one", "vit", url), User(tmp_path / "other", "vit", url)
    code, output = one.convert(cache)
    assert code == 0, output
    (entry,) = (path for path in cache.iterdir() if path.is_file())
    whole_entry = entry.read_bytes()
    shutil.copy(weights["warmup"], entry)
    shutil.copy(one.lock, other.lock)
    code, output = other.convert(cache)
    assert code != 0
    assert f"results/{NAME}/downloads/vit.checkpoint has the SHA-256 " in output
    assert f"where {other.lock} says " in output
    assert "if it is a link what it leads to, and run again." in output
    assert "Traceback" not in output
    assert not other.converted.exists()
    # As the sentence says: without the two, it is fetched again.
    other.download.unlink()
    entry.unlink()
    code, output = other.convert(cache)
    assert code == 0, output
    assert entry.read_bytes() == whole_entry
    assert len(site.asked("/vit.pth")) == 2
