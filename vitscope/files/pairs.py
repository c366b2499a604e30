"""Pairs of models: a result about both has both names, as in `resnet+vit`."""

from collections.abc import Iterable

# No name of a model has it.
BETWEEN = "+"
# Prefixes of files and facts of the first model, and of the other.
PREFIXES = ("", "other_")


def pair_name(models: Iterable[str]) -> str:
    """Return the name of a pair of models in files."""
    return BETWEEN.join(models)


def by_prefix(subject: str) -> dict[str, str]:
    """Return the models in a name, one or two, by the prefix of their files and facts."""
    return dict(zip(PREFIXES, subject.split(BETWEEN), strict=False))


def split_prefix(name: str) -> tuple[str, str]:
    """Return the prefix of a file or fact, and its name without it."""
    prefix = next(each for each in reversed(PREFIXES) if name.startswith(each))
    return prefix, name.removeprefix(prefix)
