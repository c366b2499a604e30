"""Videos of a study as a user makes them: what is made, and what ends in a sentence."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.runs.copies import SETTINGS, Workflow, write_study
from tests.video.pictures import cut, folder_of, frames, read_back, save_frames


@pytest.fixture
def videos(fresh: Workflow, weights: dict[str, Path], tmp_path: Path) -> Workflow:
    """A study with videos that can be shown, and others that cannot."""
    shown = frames(5, (48, 32))
    whole = save_frames(tmp_path / "whole.gif", shown, 80)
    (tmp_path / "notes.mp4").write_text("no video")
    sources = {
        "folder": ("vit", folder_of(tmp_path / "frames", shown)),
        "whole": ("vit", whole),
        "broken": ("vit", cut(whole, 0.6)),
        "notes": ("vit", tmp_path / "notes.mp4"),
        "blind": ("resnet", whole),
    }

    def change(settings: dict[str, Any]) -> None:
        for name, model in SETTINGS["models"].items():
            settings["models"][name] = model | {"checkpoint": {"path": str(weights[name])}}
        settings["videos"] = {
            name: {"model": model, "source": {"path": str(path)}}
            for name, (model, path) in sources.items()
        }

    write_study(tmp_path / "own.yaml", change)
    return Workflow(fresh.root, tmp_path)


@pytest.mark.nightly
def test_videos_are_made_or_refused(videos: Workflow) -> None:
    targets = ["folder.webp", "whole.gif", "broken.webp", "notes.gif", "blind.webp"]
    code, output = videos.run(
        "--keep-going", "--cores", "2", *(f"figures/own/{name}" for name in targets)
    )
    assert code != 0
    assert "Traceback" not in output
    made = videos.root / "figures" / "own"
    names = {"folder.webp", "whole.gif", "broken.incomplete.webp"}
    assert {path.name for path in made.iterdir()} == names
    assert len(read_back(made / "folder.webp")) == 5
    with Image.open(made / "whole.gif") as image:
        assert (image.n_frames, image.info["duration"]) == (5, 80)
    kept, folder = read_back(made / "broken.incomplete.webp"), read_back(made / "folder.webp")
    assert 0 < len(kept) < 5
    # The colours of a GIF are nearly those of the files.
    assert np.abs(np.array(kept).astype(int) - folder[: len(kept)]).mean() < 6
    for sentence in (
        f"cut-whole.gif breaks off in frame {len(kept) + 1}: the {len(kept)} frames before that "
        "are in figures/own/broken.incomplete.webp; repair the video",
        "notes.mp4 is no ",
        "models.resnet: no attention was found: nowhere is a softmax",
    ):
        assert output.count(sentence) == 1


@pytest.mark.nightly
def test_frames_that_change_are_shown_anew(videos: Workflow, tmp_path: Path) -> None:
    target = "figures/own/folder.webp"
    videos.make("--cores", "2", target)
    assert videos.plan(target) == {}
    Image.new("RGB", (48, 32)).save(tmp_path / "frames" / "frame2.png")
    assert videos.plan(target) == {"draw_video": 1}
