"""Measure the weights of a model in training, as recorded there or through its snapshots."""

from scripts._job import job, room
from vitscope.files.tensors import TensorFile
from vitscope.files.whole import sha256_of
from vitscope.measures.given import OnWeights
from vitscope.training.history import HISTORY

with job(snakemake):
    model = snakemake.wildcards.model
    history = snakemake.input.get("history")
    if history:
        given = OnWeights(model, history=HISTORY.read(history))
        origin = {"history_sha256": sha256_of(history)}
    else:
        snapshots = [TensorFile(path) for path in snakemake.input.snapshots]
        given = OnWeights(model, snapshots=snapshots)
        origin = {"checkpoint_sha256": given.snapshots[-1].metadata["source_sha256"]}
    table = room(snakemake, "compute").measure(given, **snakemake.params.settings)
    room(snakemake, "table").TABLE.write(table, snakemake.output.table, origin)
