"""Names of pairs of models: a result about two models has both names, as in `resnet+vit`."""

from collections.abc import Iterable

# The sign between the names of a pair; no name of a model contains it.
BETWEEN = "+"
# The prefixes that the files and facts of the first and of the second model of a pair have.
PREFIXES = ("", "other_")


def pair_name(models: Iterable[str]) -> str:
    """Return the name of a pair of models, as used in file names."""
    return BETWEEN.join(models)


def by_prefix(subject: str) -> dict[str, str]:
    """Return the one or two models in a name, keyed by the prefix of their files and facts."""
    return dict(zip(PREFIXES, subject.split(BETWEEN), strict=False))
