"""Jobs that extract the latents of a shard, and export the latents of a whole model."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from vitscope.files.pairs import by_prefix
from vitscope.jobs.job import Files, Job, Names, Request, Resources, Study, Takes, Values
from vitscope.jobs.networks import with_network
from vitscope.measures.work import Work
from vitscope.networks.finding.cut_points import BLOCKS, read_cut_points

if TYPE_CHECKING:
    from vitscope.files.arrays import Array, Exported
    from vitscope.files.tensors import TensorFile

VALUE_BYTES = {"float32": 4, "bfloat16": 2}
# Seconds to copy and write a gigabyte of latents, besides the passes; 1.2 to 2.1 were measured
# (docs/benchmarks.md).
SECONDS_PER_GB = 1.8


def values_of_latents_job(study: Study, names: Names) -> Values:
    analysis = study.analysis
    return {
        **with_network(study, names["model"]),
        "shard": int(names["part"]),
        "selection": study.selection(names["model"]),
        "batch_size": analysis.batch_size,
        "dtype": analysis.latents_dtype,
        "device": study.device,
    }


def count_images_of_latents_job(request: Request) -> int:
    """Return the number of images in a shard or, if no part is named, in all shards."""
    study, names = request.study, request.names
    images = sum(map(study.images, by_prefix(names["model"]).values()))
    size = study.analysis.shard_size
    return min(size, images - int(names["part"]) * size) if "part" in names else images


def work_of_shard(request: Request, holds: int = 0) -> Work:
    """Return the passes for a shard, with the feature maps of `holds` images in memory at once."""
    return Work(
        count_images_of_latents_job(request), request.study.analysis.batch_size, holds=holds
    )


def bytes_of_latents_job(request: Request) -> int:
    """Return the size in bytes of a shard's latents or, if no part is named, of all latents."""
    if request.network is None:
        raise ValueError("the bytes of latents are known by the block table")
    dtype = request.study.analysis.latents_dtype
    return request.network.values * count_images_of_latents_job(request) * VALUE_BYTES[dtype]


def extract_latents_job(
    inputs: Files, outputs: Files, values: Values, resources: Resources
) -> None:
    """Write the feature maps at all cut points, from one pass of the shard's images."""
    from vitscope.data.split import ROWS, shard_rows
    from vitscope.jobs.opening import open_images, open_running, origin_of_opened_checkpoint
    from vitscope.networks.running.extraction import shapes_of, write_latents

    network, device, changed = open_running(inputs, values, resources, first=not values["shard"])
    images, settings = open_images(inputs["images"]), values["network"]
    rows = shard_rows(len(images), values["shard"], **values["selection"])
    origin = {"data_sha256": images.digest, ROWS: json.dumps(rows)}
    with changed:
        write_latents(
            network,
            read_cut_points(inputs["blocks"]),
            [*shapes_of(inputs["blocks"]).values()],
            images.batches(rows, values["batch_size"], settings["mean"], settings["std"]),
            len(rows),
            outputs["latents"],
            dtype=values["dtype"],
            device=device,
            metadata=origin | origin_of_opened_checkpoint(inputs["checkpoint"]),
        )


EXTRACT_LATENTS = Job(
    run=extract_latents_job,
    values=values_of_latents_job,
    takes=Takes(
        torch=True,
        work=work_of_shard,
        seconds=lambda asked: (
            SECONDS_PER_GB * bytes_of_latents_job(asked) / 1e9 if asked.network else 0
        ),
        writes=bytes_of_latents_job,
    ),
    batches="analysis.batch_size",
)


FORMATS = {"npz": "npz", "hdf5": "h5", "zarr": "zarr.zip"}


def export_latents_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Write the feature maps at each cut point, with the rows and labels of their images."""
    from pathlib import Path

    import numpy as np

    from vitscope.data.split import origin_and_rows, select
    from vitscope.files.arrays import Exported, write_arrays
    from vitscope.files.tensors import TensorFile
    from vitscope.jobs.opening import open_images

    shards = [TensorFile(path) for path in inputs["latents"]]
    images, blocks = open_images(inputs["images"]), BLOCKS.read(inputs["blocks"])
    rows = select(len(images), **values["rows"])
    arrays = {f"maps/{name}": _maps_in_export_latents_job(shards, name) for name in blocks["name"]}
    about = {"images": rows, "labels": np.asarray(images.labels)[rows]}
    about |= {key: np.array(blocks[key].tolist()) for key in ("name", "kind", "stage", "depth")}
    arrays |= {key: Exported.of(array) for key, array in about.items()}
    origin, _ = origin_and_rows(shards[0].metadata)
    facts = {**origin, "study": values["study"], "model": values["model"]}
    write_arrays(Path(outputs["latents"]), values["format"], arrays, facts)


EXPORT_LATENTS = Job(
    run=export_latents_job,
    values=lambda study, names: {
        "study": study.name,
        "model": names["model"],
        "rows": {"images": study.images(names["model"]), "seed": study.analysis.seed},
        "format": names["container"],
    },
)


def _maps_in_export_latents_job(shards: "Sequence[TensorFile]", name: str) -> "Exported":
    import numpy as np

    from vitscope.files.arrays import Exported
    from vitscope.files.tensors import as_float

    def read_shards() -> "Iterator[Array]":
        for shard in shards:
            yield as_float(shard.array(name), shard.dtype(name))

    sizes = [shard.shape(name) for shard in shards]
    images = sum(size[0] for size in sizes)
    return Exported((images, *sizes[0][1:]), np.dtype(np.float32), sizes[0][0], read_shards)
