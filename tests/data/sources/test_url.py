import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.helpers.pictures import as_png
from tests.helpers.studies import mini_with
from tests.helpers.web import Site, whole
from tests.video.pictures import frames, save_frames
from vitscope.data.split import Split
from vitscope.errors import VitscopeError
from vitscope.jobs.job import Names, Resources, find_job
from vitscope.settings.study import Study
from vitscope.studies.loading import load_study
from vitscope.video.frames import open_video_frames
from vitscope.web.lockfile import Entry, confirm_by_lock, find_lock_entry


def png(seed: int) -> bytes:
    return as_png(np.random.default_rng(seed).integers(0, 256, (40, 60, 3), np.uint8))


def study_of(folder: Path, url: str, **keys: str) -> Study:
    photo = {"source": {"kind": "url", "url": url, **keys}, "splits": {"test": {"images": 1}}}
    photo |= {"classes": None, "mean": [0.5] * 3, "std": [0.25] * 3}
    photo |= {"image_size": 32, "resize": [36, 36]}
    model = {"family": "vit", "arch": {"name": "vit_tiny_patch16_224"}, "data": "photo"}
    model |= {"checkpoint": {"url": "https://host/vit.pth"}}
    figures = {"heads": {"kind": "attention_heads", "models": ["net"]}}
    videos = {"walk": {"model": "net", "source": {"url": url, **keys}}}
    analysis = {"images": 1, "augmented": {"split": "test", "images": 1}}
    sections: dict[str, Any] = {"data": {"photo": photo}, "models": {"net": model}}
    sections |= {"figures": figures, "videos": videos, "analysis": analysis}
    return load_study(mini_with(folder, **sections, buildups=None, training=None))


def run(job: str, study: Study, inputs: dict[str, Any], output: Path, names: Names) -> None:
    work = find_job(job)
    key = "images" if job == "build_split" else "file"
    lock = Resources(label="photo", lock=str(study.lock_path), say=lambda _: None)
    work.run(inputs, {key: str(output)}, work.values(study, names), lock)


def fetch(study: Study, folder: Path, **names: str) -> Path:
    file = folder / "photo.image"
    run("fetch_file", study, {}, file, names or {"dataset": "photo"})
    return file


def build(study: Study, file: Path) -> Split:
    output = file.with_name("test.safetensors")
    names = {"dataset": "photo", "split": "test"}
    run("build_split", study, {"source": [str(file)]}, output, names)
    return Split(output)


def test_an_image_comes_from_its_address(site: Site, tmp_path: Path) -> None:
    url = site.at("/toucan.png", whole(png(0)))
    study = study_of(tmp_path, f"{url}?token=secret")
    file = fetch(study, tmp_path)
    digest = hashlib.sha256(png(0)).hexdigest()
    split = build(study, file)
    # The keys of the query are no secret, their values are.
    assert split.metadata["source"].startswith(f"{url}?token=~")
    assert split.metadata["source_sha256"] == digest
    expected = Image.open(io.BytesIO(png(0))).resize((36, 36), Image.Resampling.BICUBIC)
    pixels = np.asarray(expected.crop((2, 2, 34, 34))).transpose(2, 0, 1)
    np.testing.assert_array_equal(split.images([0])[0], pixels)
    assert split.labels.tolist() == [-1]
    address = split.metadata["source"]
    assert find_lock_entry(study.lock_path, address) == Entry(digest, len(png(0)))


@pytest.mark.parametrize("names", [{"dataset": "photo"}, {"video": "walk"}])
def test_another_file_at_the_address_is_refused(
    site: Site, tmp_path: Path, names: dict[str, str]
) -> None:
    url = site.at("/toucan.png", whole(png(0)), whole(png(1)))
    study = study_of(tmp_path, url)
    fetch(study, tmp_path, **names).unlink()
    with pytest.raises(VitscopeError, match=r"has the SHA-256 .* where .*own\.lock\.yaml says"):
        fetch(study, tmp_path, **names)
    wrong = study_of(tmp_path, url, sha256="0" * 64)
    with pytest.raises(VitscopeError, match=r"has the SHA-256 .* where the study says 000"):
        fetch(wrong, tmp_path, **names)


def test_a_file_from_a_shared_cache_is_checked_where_it_is_used(tmp_path: Path) -> None:
    file = tmp_path / "photo.image"
    file.write_bytes(png(0))
    study = study_of(tmp_path, "https://host/toucan.png")
    build(study, file)
    file.write_bytes(png(1))
    with pytest.raises(VitscopeError, match=r"^data\.photo: .*own\.lock\.yaml says .*: it is"):
        build(study, file)
    right = {"url": "https://host/a", "sha256": hashlib.sha256(png(1)).hexdigest()}
    assert confirm_by_lock(right, file, study.lock_path, label="it") == right["sha256"]
    with pytest.raises(VitscopeError, match=r"where the study says 000"):
        confirm_by_lock(right | {"sha256": "0" * 64}, file, study.lock_path, label="it")


def test_a_video_is_known_by_what_it_holds(site: Site, tmp_path: Path) -> None:
    """Its file has no ending that tells what it is."""
    gif = save_frames(tmp_path / "walk.gif", frames(3))
    study = study_of(tmp_path, site.at("/walk.gif", whole(gif.read_bytes())))
    video = open_video_frames(fetch(study, tmp_path, video="walk"))
    assert len([*video.frames]) == 3
