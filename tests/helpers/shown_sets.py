"""Sets of images that people were shown, drawn anew: the published names, and colours inside.

    python -m tests.helpers.shown_sets

draws the picture of the manual, of networks whose decisions are drawn at random.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from tests.helpers.drawing import drawn_from
from tests.helpers.pictures import as_png
from tests.helpers.splits import built
from vitscope.data.shown_images import read_shown_conditions, read_shown_images
from vitscope.data.sources.cue_conflict import read_cue_conflict_categories
from vitscope.data.sources.model_vs_human import IN_FOLDERS
from vitscope.data.split import Split
from vitscope.drawing.figure import Member
from vitscope.drawing.saving import style
from vitscope.measures.classification.beside_people import compare_on_set
from vitscope.package_data import STYLE

CATEGORIES = read_cue_conflict_categories()
PICTURE = Path(__file__).parents[2] / "docs" / "images" / "beside_people.png"
# How much the red of a category differs from that of the next.
STEP = 15


def decision_on(label: int, condition: int, number: int) -> int:
    """Return the category whose red an image has: in some images, the one after its own."""
    return (label + (number % (condition + 2) == 0)) % 16


def files_of(name: str) -> dict[str, bytes]:
    """Return the files of a set by their paths in its archive, in another order than ours."""
    conditions = read_shown_conditions(name)["condition"].tolist()
    shown = read_shown_images(name)
    found = {}
    for number, (_, condition, category, image, _) in enumerate(shown.to_numpy().tolist()):
        red = STEP * decision_on([*CATEGORIES].index(category), conditions.index(condition), number)
        file = f"dnn/session-1/{number + 1:04}_cop_dnn_{condition}_{category}_10_{image}.png"
        if name in IN_FOLDERS:
            file = f"{category}/{image}.png"
        found[file] = as_png(np.full((32, 32, 3), (red, number % 256, 0), np.uint8))
    return dict(sorted(found.items(), reverse=True))


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    for file, content in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)
    return folder


def built_set(path: Path, name: str, folder: Path) -> Split:
    source = {"kind": "model_vs_human", "set": name, "path": str(folder)}
    return built(path, source, classes=1000)


class NamesRed(nn.Module):
    """A network that names the category of the red of an image, by the first of its classes."""

    def forward(self, images: Tensor) -> Tensor:
        named = (images[:, 0].mean((1, 2)) * 255 / STEP).round().long()
        first = torch.tensor([classes[0] for classes in CATEGORIES.values()])
        return nn.functional.one_hot(first[named], 1000) * 20.0


def table_at_random(name: str, model: str, loss: float, seed: int) -> pd.DataFrame:
    """Return the table of a network that is right by chance, the less the more images changed."""
    conditions = read_shown_conditions(name)["condition"].tolist()
    changed = read_shown_images(name)["condition"].map(conditions.index).to_numpy()
    share = np.clip(0.93 - loss * changed / len(conditions), 1 / 16, 1)
    right = np.random.default_rng(seed).random(len(changed)) < share
    return compare_on_set(name, np.arange(len(right)), right, 200, 0).assign(model=model)


def main() -> None:
    sets, drawn = ("high-pass", "low-pass"), (("resnet", 1.2), ("vit", 0.8))
    names = [(f"{family}, {name}", name, family, loss) for name in sets for family, loss in drawn]
    tables = [
        table_at_random(name, model, loss, seed)
        for seed, (model, name, _, loss) in enumerate(names)
    ]
    labels = {"resnet": "a network drawn at random", "vit": "another one"}
    members = [Member(model, labels[family], family) for model, _, family, _ in names]
    with style(STYLE):
        figure = drawn_from("beside_people", {"beside_people": pd.concat(tables)}, members)
        figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    main()
