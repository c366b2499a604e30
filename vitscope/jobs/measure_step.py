"""Count how many test images the network of a step of a build-up classifies rightly."""

from pathlib import Path

from vitscope.buildup import rule
from vitscope.jobs.job import Files, Job, Names, Request, Resources, Study, Takes, Values
from vitscope.measures.measure import Work, passes
from vitscope.networks.building.family import module_of


def _values(study: Study, names: Names) -> Values:
    return {
        "where": f"{study.path}: buildups.{names['buildup']}.weights",
        "batch_size": study.analysis.batch_size,
        "device": study.device,
        "modules": [module_of(rule.FAMILY)],
    }


def _work(request: Request) -> Work | None:
    return passes(1, None, request.images, request.study.analysis.batch_size)


JOB = Job(
    values=_values,
    takes=Takes(torch=True, work=_work, split="test", builds=True),
    batches="analysis.batch_size",
)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.buildup.rule import network_to_try
    from vitscope.buildup.table import RESULT, measure, refuse_missing
    from vitscope.files.whole import sha256_of
    from vitscope.jobs.opening import open_device, open_images

    where, weights = values["where"], inputs["weights"]
    network = network_to_try(inputs["tried"], where)
    if not weights:
        refuse_missing(network, where)
    images = open_images(inputs["images"])
    result = measure(
        Path(weights),
        network,
        images,
        where=where,
        batch_size=values["batch_size"],
        device=open_device(values["device"]),
    )
    digests = {"data_sha256": images.digest, "checkpoint_sha256": sha256_of(weights)}
    RESULT.write(result, outputs["result"], digests)
