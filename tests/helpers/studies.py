import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from vitscope.files.strict_yaml import load_yaml
from vitscope.measures import registry
from vitscope.settings.keys import Figure, Recipe
from vitscope.studies.loading import BUNDLED_STUDIES
from vitscope.studies.resolving import resolve_kind_of_figure

# Jobs, passes and bytes are counted of it, so that a figure more of another study changes no test.
FROZEN = Path(__file__).parents[1] / "studies" / "frozen.yaml"

BUNDLED = sorted(file.stem for file in BUNDLED_STUDIES.glob("*.yaml"))


def figure_of(kind: str, models: list[str], groups: Sequence[tuple[str, ...]] = ()) -> Figure:
    """Return a figure as a study has it after loading, of models or of pairs or triples of them."""
    named: dict[str, Any] = {"models": models, "pairs": [], "triples": []}
    if registry.kinds()[kind].all_pairs:
        named["models"] = [*chain(*groups)]
    elif groups:
        named[Figure.EITHER[len(groups[0]) - 1]] = [*groups]
    figure = Figure(kind=kind, **named)
    return resolve_kind_of_figure(figure, "a test", kind)


def bundled(name: str) -> dict[str, Any]:
    """Return a bundled study as it is written."""
    return load_yaml(BUNDLED_STUDIES / f"{name}.yaml")


mini = partial(bundled, "mini")


def mini_with(folder: Path, **sections: Any) -> Path:
    """Write the default study with these sections for its own, or without those that are None."""
    path = folder / "own.yaml"
    study = {key: section for key, section in (mini() | sections).items() if section is not None}
    path.write_text(yaml.safe_dump(study), encoding="utf-8")
    return path


def recorded_recipe(metadata: Mapping[str, str]) -> dict[str, Any]:
    """Return the recipe of weights from their file; keys that came later are as by default."""
    defaults = asdict(Recipe(epochs=1, batch_size=1, learning_rate=1.0))
    return defaults | json.loads(metadata["recipe"])
