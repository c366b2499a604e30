"""Pairs of models: a result about both has both names, as in `resnet+vit`."""

from collections.abc import Iterable

# Joins the names of a pair of models; no name of a model contains it.
BETWEEN = "+"
# Prefixes of files and facts of the first model and of the second.
PREFIXES = ("", "other_")


def pair_name(models: Iterable[str]) -> str:
    """Return the name of a pair of models in file names."""
    return BETWEEN.join(models)


def by_prefix(subject: str) -> dict[str, str]:
    """Return the one or two models in a name, by the prefix of their files and facts."""
    return dict(zip(PREFIXES, subject.split(BETWEEN), strict=False))
