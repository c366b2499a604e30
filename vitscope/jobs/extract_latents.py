"""Extract the latents of one shard of images at every cut point of a model."""

from vitscope.jobs.job import Files, Job, Names, Request, Resources, Study, Takes, Values
from vitscope.jobs.measuring import with_network
from vitscope.measures.measure import Work

# Bytes of a value.
VALUE_BYTES = {"float32": 4, "bfloat16": 2}
# To copy and write latents, beside the passes: measured are 1.2 to 2.1 (docs/benchmarks.md).
SECONDS_PER_GB = 1.8


def _values(study: Study, names: Names) -> Values:
    analysis = study.analysis
    return {
        **with_network(study, names["model"]),
        "shard": int(names["part"]),
        "selection": study.selection(names["model"]),
        "batch_size": analysis.batch_size,
        "dtype": analysis.latents_dtype,
        "device": study.device,
    }


def _images(request: Request) -> int:
    size, part = request.study.analysis.shard_size, int(request.names["part"])
    return min(size, request.study.images(request.names["model"]) - part * size)


def work_of_shard(request: Request, holds: int = 0) -> Work:
    """Return the passes of the images of a shard, whose maps are held for so many at a time."""
    return Work(_images(request), request.study.analysis.batch_size, holds=holds)


def latents_bytes(request: Request) -> int:
    """Return the bytes of the latents of a shard."""
    if request.network is None:
        raise ValueError("the bytes of latents are known by the block table")
    dtype = request.study.analysis.latents_dtype
    return request.network.values * _images(request) * VALUE_BYTES[dtype]


def _seconds(request: Request) -> float:
    return SECONDS_PER_GB * latents_bytes(request) / 1e9 if request.network else 0


JOB = Job(
    values=_values,
    takes=Takes(torch=True, work=work_of_shard, seconds=_seconds, writes=latents_bytes),
    batches="analysis.batch_size",
)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Fill all cut points in one pass of the images of the shard."""
    from vitscope.jobs.opening import open_device, open_images, open_network, origin_of
    from vitscope.networks.running.latents import extract_shard

    device = open_device(values["device"])
    proved_on = None if values["shard"] else device
    extract_shard(
        open_network(inputs["checkpoint"], values["network"], resources.count, proved_on),
        inputs["blocks"],
        open_images(inputs["images"]),
        outputs["latents"],
        shard=values["shard"],
        selection=values["selection"],
        settings=values["network"],
        batch_size=values["batch_size"],
        dtype=values["dtype"],
        device=device,
        metadata=origin_of(inputs["checkpoint"]),
    )
