"""What people and networks took the cue-conflict stimuli for, from the authors' raw files.

The clone of github.com/rgeirhos/texture-vs-shape at ccd0c01 makes the published table:

    python -m tests.helpers.cue_conflict CLONE > vitscope/claims/published_points/cue_conflict.csv
"""

import csv
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# As the files are called, between the name of the experiment and that of the session.
NETWORKS = {
    "resnet50": "ResNet-50",
    "alexnet": "AlexNet",
    "googlenet": "GoogLeNet",
    "vgg": "VGG-16",
    "trained-CNNs/alexnet": "AlexNet of torchvision",
    "trained-CNNs/vgg16": "VGG-16 of torchvision",
    "squeezenet1_1": "SqueezeNet1.1",
    "densenet121": "DenseNet-121",
    "resnet101": "ResNet-101",
    "resnet152": "ResNet-152",
    "oidv2-resnet101": "ResNet-101, Open Images",
    "resnet50_train_60_epochs": "ResNet-50, Stylized-ImageNet",
    "alexnet_train_60_epochs_lr0.001": "AlexNet, Stylized-ImageNet",
    "vgg16_train_60_epochs_lr0.01": "VGG-16, Stylized-ImageNet",
    "squeezenet1_1_train_60_epochs_lr0.001": "SqueezeNet1.1, Stylized-ImageNet",
    "densenet121_train_60_epochs": "DenseNet-121, Stylized-ImageNet",
}
PEOPLE = [f"subject-{number:02d}" for number in range(1, 11)]
EXPERIMENT = "style-transfer-512-nomask-experiment"
IMAGE = re.compile(r".*_([a-z]+)(\d+)-([a-z]+)(\d+)\.png")


def read_file(path: Path) -> str:
    """Return a letter for each image, in the order of their names; those of the same cues signs."""
    letters = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            shape, one, texture, other = IMAGE.fullmatch(row["imagename"]).groups()
            said = row["object_response"]
            signs = "+-" if shape == texture else "so"
            letter = signs[0] if said == shape else "t" if said == texture else signs[1]
            assert row["category"] == shape
            letters[f"{shape}/{shape}{one}-{texture}{other}.png"] = letter
    assert len(letters) == 1280
    return "".join(letters[name] for name in sorted(letters))


def kappa(one: str, other: str) -> float:
    """Return Cohen's kappa of whether two name the shape, counted image by image."""
    both = [(a in "s+", b in "s+") for a, b in zip(one, other, strict=True)]
    count = len(both)
    alike = sum(a == b for a, b in both) / count
    first, second = (sum(pair[each] for pair in both) / count for each in (0, 1))
    chance = first * second + (1 - first) * (1 - second)
    return (alike - chance) / (1 - chance)


def rows_of(clone: Path) -> Iterator[tuple[str, str, float]]:
    """Yield who decided, their decisions, and the mean kappa with each of the (other) people."""
    files = {}
    for path in (clone / "raw-data").glob(f"{EXPERIMENT}*/*.csv"):
        trained = "trained-CNNs/" if path.parent.name.endswith("trained-CNNs") else ""
        name = re.sub(r"_session.1", "", path.stem.removeprefix(f"{EXPERIMENT}_"))
        files[name if f"{trained}{name}" not in NETWORKS else f"{trained}{name}"] = path
    people = {name: read_file(files[name]) for name in PEOPLE}
    for name in PEOPLE:
        others = [people[each] for each in PEOPLE if each != name]
        yield "people", people[name], sum(kappa(people[name], each) for each in others) / 9
    for name, series in NETWORKS.items():
        said = read_file(files[name])
        yield series, said, sum(kappa(said, each) for each in people.values()) / 10


def main() -> None:
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["model", "decisions", "consistency"])
    for model, said, consistency in rows_of(Path(sys.argv[1])):
        table.writerow([model, said, f"{consistency:.6f}"])


if __name__ == "__main__":
    main()
