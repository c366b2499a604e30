"""Count how many test images the network of a step of a build-up classifies rightly."""

from pathlib import Path

from scripts._job import job
from vitscope.buildup.measuring import measure, refuse_missing
from vitscope.buildup.table import RESULT
from vitscope.buildup.tried import network_to_try
from vitscope.data.split import Split
from vitscope.files.whole import sha256_of
from vitscope.networks.running.device import pick_device

with job(snakemake, batches="analysis.batch_size"):
    inputs, where = snakemake.input, snakemake.params.missing
    network = network_to_try(inputs.tried, where)
    if not inputs.weights:
        refuse_missing(network, where)
    images = Split(inputs.images)
    result = measure(
        Path(inputs.weights),
        network,
        images,
        where=where,
        batch_size=snakemake.params.batch_size,
        device=pick_device(snakemake.params.device),
    )
    digests = {"data_sha256": images.digest, "checkpoint_sha256": sha256_of(inputs.weights)}
    RESULT.write(result, snakemake.output.result, digests)
