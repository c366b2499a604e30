"""Number the classes, so that labels match the outputs of a network."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from vitscope.errors import VitscopeError, first_of, nearest, quoted, visible

# The value of `class_names` for networks with ImageNet's 1,000 classes.
IMAGENET = "imagenet"
# The maximum size of a list of names in bytes; a larger file is refused.
LARGEST_LIST = 10_000_000
SHOWN, NAMED = 100, 20


class Numbering(NamedTuple):
    """The names of all classes; `numbers` maps labels of the source to classes, if they differ."""

    names: list[str]
    numbers: list[int] | None


def number_classes(
    where: str, found: Sequence[str], dataset: Mapping[str, Any], empty: Sequence[str] = ()
) -> Numbering:
    """Number the classes `found` in a source; `empty` names folders without images."""
    classes = dataset["classes"]
    if classes is None:
        return Numbering([], None)
    names, index = dataset.get("class_names"), dataset.get("class_index")
    if index is not None:
        return _number_by_index(where, found, classes, index)
    if names is not None:
        return _number_by_names(where, found, classes, names)
    if found and len(found) != classes:
        # A folder may hold images of only some of the model's classes.
        fewer = (
            ", say in `class_index` which number each has, or put all images in one folder, "
            "without labels"
        )
        without = f", and no image in the folder {first_of(empty, NAMED)}" if empty else ""
        raise VitscopeError(
            f"{where}: the source has {len(found)} classes ({first_of(found, NAMED)}{without}) and "
            f"the study says {classes}: correct `classes` of the data "
            f"set{fewer if len(found) < classes else ''}."
        )
    return Numbering([*found] or numbered_names(classes), None)


def numbered_names(classes: int) -> list[str]:
    return [str(number) for number in range(classes)]


def _number_by_names(where: str, found: Sequence[str], classes: int, names: list[str]) -> Numbering:
    check_distinct_class_names(where, names)
    if len(names) != classes:
        raise VitscopeError(
            f"{where}: class_names has {len(names)} names and the study says {classes} classes: "
            f"name every class, in the order of the outputs of the network."
        )
    _check_all_classes_named(where, found, "class_names", names)
    place = {name: number for number, name in enumerate(names)}
    return Numbering(names, [place[name] for name in found] if found else None)


def check_distinct_class_names(where: str, names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise VitscopeError(
                f"{where}: class_names has {quoted(name)} {count} times: name each class once."
            )


def _number_by_index(
    where: str, found: Sequence[str], classes: int, index: Mapping[str, int]
) -> Numbering:
    if not found:
        raise VitscopeError(
            f"{where}: class_index goes by the names of classes, which this source does not have: "
            f"put the images of each class in a folder of its name, or remove the key."
        )
    for name in index:
        if name not in found:
            raise VitscopeError(
                f"{where}: class_index.{name}: the source has no class of this name, only "
                f"{first_of(found, NAMED)}: correct the name.{nearest(name, found)}"
            )
    _check_all_classes_named(where, found, "class_index", index)
    check_class_index(where, classes, index)
    names = numbered_names(classes)
    for name, number in index.items():
        names[number] = name
    return Numbering(names, [index[name] for name in found])


def check_class_index(where: str, classes: int, index: Mapping[str, int]) -> None:
    owner: dict[int, str] = {}
    for name, number in index.items():
        if number >= classes:
            raise VitscopeError(
                f"{where}: class_index.{name}: found {number}, allowed: 0 to {classes - 1}, for "
                f"the study says {classes} classes."
            )
        if owner.setdefault(number, name) != name:
            raise VitscopeError(
                f"{where}: class_index.{name}: found {number}, which {quoted(owner[number])} has: "
                f"give each class a number of its own."
            )


def _check_all_classes_named(
    where: str, found: Sequence[str], key: str, known: Collection[str]
) -> None:
    for name in found:
        if name not in known:
            raise VitscopeError(
                f"{where}: the source has the class {quoted(name)} and {key} names "
                f"{first_of([*known], NAMED)}: add it there, or take its images away."
                f"{nearest(name, known)}"
            )


def read_class_names(where: str, path: Path) -> list[str]:
    """Read class names from a text file, one per line, starting with class 0."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_LIST + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise VitscopeError(
            f"{where}: {path} cannot be read ({error.strerror}): correct the path."
        ) from error
    except UnicodeDecodeError as error:
        raise VitscopeError(
            f"{where}: {path} is not text in UTF-8 (byte {error.start}): save it as UTF-8."
        ) from error
    names = [line.strip() for line in text.rstrip().split("\n")]
    if len(data) > LARGEST_LIST or "" in names or "\0" in text:
        raise VitscopeError(
            f"{where}: {path} is no list of names: write one name a line, and no empty line."
        )
    return names


def imagenet_synsets() -> list[str]:
    return _read_timm_class_file("imagenet_synsets.txt").split()


def _read_timm_class_file(file: str) -> str:
    timm = find_spec("timm")
    if timm is None or timm.origin is None:
        raise VitscopeError(
            "The names of ImageNet's classes come with timm, which is not installed: install it, "
            "or give a file of names."
        )
    return (Path(timm.origin).parent / "data" / "_info" / file).read_text(encoding="utf-8")


def imagenet_class_names() -> list[str]:
    """Return timm's names of ImageNet's classes; add the synset where two classes share a name."""
    lines = _read_timm_class_file("imagenet_synset_to_lemma.txt").splitlines()
    lemmas = dict(line.split("\t") for line in lines)
    synsets = imagenet_synsets()
    # Take the first of several synonyms.
    names = [lemmas[synset].partition(",")[0] for synset in synsets]
    shared = Counter(names)
    pairs = zip(names, synsets, strict=True)
    return [f"{name} ({synset})" if shared[name] > 1 else name for name, synset in pairs]


def list_classes(names: Mapping[int, str], most: int = SHOWN) -> str:
    """List classes with their numbers in one line; shorten a list of more than `most`."""
    said = [visible(f"{number} {name}") for number, name in names.items()]
    return ", ".join(said if len(said) <= most else [*said[: most - 1], "...", said[-1]])
