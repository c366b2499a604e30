"""Names of pairs and triples of models: such a result has all names, as in `resnet+vit`."""

from collections.abc import Iterable

# The sign between names; no name of a model contains it.
BETWEEN = "+"
# The prefixes that the files and facts of the first, second and third model have.
PREFIXES = ("", "other_", "third_")


def pair_name(models: Iterable[str]) -> str:
    """Return the name of a pair or triple of models, as used in file names."""
    return BETWEEN.join(models)


def by_prefix(subject: str) -> dict[str, str]:
    """Return the one to three models in a name, by the prefix of their files and facts."""
    return dict(zip(PREFIXES, subject.split(BETWEEN), strict=False))
