"""Measure the density of all eigenvalues of the Hessian on some batches of augmented images."""

from scripts._job import job

from vitscope.files.tables import write_table
from vitscope.measures.hessian.compute import Loss, density
from vitscope.networks.device import pick_device
from vitscope.networks.loading import load_model, read_origin
from vitscope.training.augmented import Augmented

with job(snakemake, batches="analysis.hessian.batch_size"):
    wildcards, params = snakemake.wildcards, snakemake.params
    images = Augmented(snakemake.input.images)
    model = load_model(snakemake.input.weights, params.model)
    digest = read_origin(snakemake.input.weights)["source_sha256"]
    loss = Loss(model, images, device=pick_device(params.device), **params.loss)
    table = density(loss, params.batches, **params.analysis)
    write_table(
        "hessian_density",
        table.assign(model=wildcards.model, snapshot=wildcards.snapshot),
        snakemake.output.density,
        {"data_sha256": images.metadata["data_sha256"], "checkpoint_sha256": digest},
    )
