"""Measure the weights of a model in training, as recorded there or through its snapshots."""

from scripts._job import job, room
from vitscope.files.tensors import TensorFile
from vitscope.files.whole import sha256_of
from vitscope.measures.given import OnWeights
from vitscope.training.history import HISTORY

with job(snakemake):
    history = snakemake.input.get("history")
    if history:
        given = OnWeights(history=HISTORY.read(history))
        origin = {"history_sha256": sha256_of(history)}
    else:
        given = OnWeights(snapshots=[TensorFile(path) for path in snakemake.input.snapshots])
        origin = {"checkpoint_sha256": given.snapshots[-1].metadata["source_sha256"]}
    settings = {"model": snakemake.wildcards.model} | snakemake.params.settings
    table = room(snakemake, "compute").measure(given, **settings)
    room(snakemake, "table").TABLE.write(table, snakemake.output.table, origin)
