"""Seconds of processor time that measures of latents take for a GB, by the shape of the maps.

The maps are random numbers. The page docs/scale.md has what this prints, and measures declare it,
rounded up, as `seconds_per_gb`.
"""

import tempfile
from pathlib import Path
from pkgutil import resolve_name
from time import process_time

import numpy as np

from bench.on_paper import STUDY, show_table
from vitscope.files.tensors import TensorFile, TensorWriter
from vitscope.jobs.latents import SECONDS_PER_GB
from vitscope.measures import registry
from vitscope.measures.given import OnLatents
from vitscope.studies.loading import load_study

# Channels, height and width.
SHAPES = {
    "ViT-Ti, 32 pixels": (192, 16, 16),
    "ViT-B/16": (768, 14, 14),
    "ViT-L/16": (1024, 14, 14),
    "ViT-g/14": (1408, 16, 16),
}
IMAGES, CUT_POINTS, TURNS = 128, 4, 3


def write_maps(path: Path, shape: tuple[int, int, int]) -> float:
    """Write maps, and return the seconds for a GB."""
    maps = np.random.default_rng(0).standard_normal((IMAGES, *shape), np.float32)
    names = [f"map{index}" for index in range(CUT_POINTS)]
    start = process_time()
    with TensorWriter(path, dict.fromkeys(names, ("F32", maps.shape)), {}) as writer:
        for name in names:
            writer.write(name, 0, maps)
    return 1e9 * (process_time() - start) / path.stat().st_size


def measure(path: Path, name: str) -> float:
    """Return the seconds of a measure for a GB of maps, at best."""
    study, taken = load_study(STUDY), []
    function = resolve_name(registry.of(study).declared(name).measure)
    settings = registry.declared(name).measuring(study, next(iter(study.models)), 0)
    for _ in range(TURNS):
        start = process_time()
        function(OnLatents(TensorFile(path), 0), **settings)
        taken.append(process_time() - start)
    return 1e9 * min(taken) / path.stat().st_size


def main() -> None:
    """Measure every measure of latents that the study has, on maps of every shape."""
    measures = [
        name for name in load_study(STUDY).measures() if registry.declared(name).needs == "latents"
    ]
    rows = {name: [name, f"{registry.declared(name).seconds_per_gb:g}"] for name in measures}
    writing = ["writing", f"{SECONDS_PER_GB:g}"]
    for shape in SHAPES.values():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "maps"
            writing.append(f"{write_maps(path, shape):.2f}")
            for name, row in rows.items():
                row.append(f"{measure(path, name):.2f}")
    show_table(("seconds for a GB", "planned", *SHAPES), [writing, *rows.values()])


if __name__ == "__main__":
    main()
