"""Pairs of models: what is about both is named by both, as `resnet+vit`."""

from collections.abc import Iterable

# No name of a model has it.
BETWEEN = "+"
# What comes before the names of files and facts that are of the first model, or of the other.
PREFIXES = ("", "other_")


def pair_name(models: Iterable[str]) -> str:
    """Return what files call a pair of models."""
    return BETWEEN.join(models)


def by_prefix(subject: str) -> dict[str, str]:
    """Return the models that a name is of, one or two, by what comes before the names of theirs."""
    return dict(zip(PREFIXES, subject.split(BETWEEN), strict=False))


def split_prefix(name: str) -> tuple[str, str]:
    """Return what comes before the name of a file or fact, and the name without it."""
    prefix = next(each for each in reversed(PREFIXES) if name.startswith(each))
    return prefix, name.removeprefix(prefix)
