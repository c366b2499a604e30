"""Write the latents of a model as one file that other programs read."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values

if TYPE_CHECKING:
    from vitscope.files.arrays import Array, Exported
    from vitscope.files.tensors import TensorFile

# Formats, and how their files end.
FORMATS = {"npz": "npz", "hdf5": "h5", "zarr": "zarr.zip"}


def _values(study: Study, names: Names) -> Values:
    model = names["model"]
    return {
        "study": study.name,
        "model": model,
        "rows": {"images": study.images(model), "seed": study.analysis.seed},
        "format": names["container"],
    }


JOB = Job(values=_values)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Write the maps of each cut point, and the rows and labels of their images."""
    from pathlib import Path

    import numpy as np

    from vitscope.data.split import parted, select
    from vitscope.files.arrays import Exported, write_arrays
    from vitscope.files.tensors import TensorFile
    from vitscope.jobs.opening import open_images
    from vitscope.networks.finding.cut_point_columns import BLOCKS

    shards = [TensorFile(path) for path in inputs["latents"]]
    images, blocks = open_images(inputs["images"]), BLOCKS.read(inputs["blocks"])
    rows = select(len(images), **values["rows"])
    arrays = {f"maps/{name}": _maps_of(shards, name) for name in blocks["name"]}
    about = {"images": rows, "labels": np.asarray(images.labels)[rows]}
    about |= {key: np.array(blocks[key].tolist()) for key in ("name", "kind", "stage", "depth")}
    arrays |= {key: Exported.of(array) for key, array in about.items()}
    origin, _ = parted(shards[0].metadata)
    facts = {**origin, "study": values["study"], "model": values["model"]}
    write_arrays(Path(outputs["latents"]), values["format"], arrays, facts)


def _maps_of(shards: "Sequence[TensorFile]", name: str) -> "Exported":
    import numpy as np

    from vitscope.files.arrays import Exported
    from vitscope.files.tensors import as_float

    def rows() -> "Iterator[Array]":
        for shard in shards:
            yield as_float(shard.array(name), shard.dtype(name))

    sizes = [shard.shape(name) for shard in shards]
    images = sum(size[0] for size in sizes)
    return Exported((images, *sizes[0][1:]), np.dtype(np.float32), sizes[0][0], rows)
