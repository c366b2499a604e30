"""Trace the weights of a model in training, as recorded there or through its snapshots."""

from scripts._job import job

from vitscope.files.tables import read_table, write_table
from vitscope.files.tensors import TensorFile
from vitscope.files.whole import sha256_of
from vitscope.measures.trajectory.compute import recorded, traced

with job(snakemake):
    moments = snakemake.params.moments
    history = snakemake.input.get("history")
    if history:
        trajectory = recorded(
            read_table("training_history", history), moments["warmup"], where=history
        )
        metadata = {"history_sha256": sha256_of(history)}
    else:
        # Imported here: what was recorded in training is read without torch.
        from vitscope.networks.empty import parameter_names

        files = [TensorFile(path) for path in snakemake.input.snapshots]
        snapshots = dict(zip(moments["names"], files, strict=True))
        network = moments["model"]
        parameters = parameter_names(
            network["family"], network["arch"], network["classes"], network["image_size"]
        )
        trajectory = traced(snapshots, parameters, moments["warmup"])
        metadata = {"checkpoint_sha256": files[-1].metadata["source_sha256"]}
    write_table(
        "trajectory",
        trajectory.assign(model=snakemake.wildcards.model),
        snakemake.output.trajectory,
        metadata,
    )
