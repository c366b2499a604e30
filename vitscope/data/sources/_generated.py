"""What data sets have in common whose images are drawn on demand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from vitscope.data.source import Source, no_such_split


class Generated(Source):
    """A split of a generated data set; each image depends on seed, split and index alone."""

    name: ClassVar[str]
    sizes: ClassVar[Mapping[str, int]]
    class_names: ClassVar[Sequence[str]]

    def __init__(self, source: Mapping[str, Any], split: str, file: Path | None = None) -> None:
        if split not in self.sizes:
            raise no_such_split(self.name, split, self.sizes)
        self._split, self._seed = split, source.get("seed", 0)
        self.classes = list(self.class_names)
        self.provenance = {"source": self.name, "source_seed": str(self._seed)}

    def __len__(self) -> int:
        return self.sizes[self._split]
