"""Measure what each residual branch of a model is worth in accuracy."""

from scripts._job import job

from vitscope.data.split import Split
from vitscope.files.tables import read_table, write_table
from vitscope.measures.lesion.compute import branches_of, correctness, lesion_table
from vitscope.networks.device import pick_device
from vitscope.networks.family import find_family
from vitscope.networks.image_rows import known_labels, rows_to_classify
from vitscope.networks.loading import load_model, read_origin

with job(snakemake, batches="analysis.batch_size"):
    settings, lesion = snakemake.params.model, snakemake.params.lesion
    images = Split(snakemake.input.images)
    rows = rows_to_classify(images, lesion["images"], lesion["seed"])
    labels = known_labels(images, rows)
    model = load_model(snakemake.input.checkpoint, settings)
    digest = read_origin(snakemake.input.checkpoint)["source_sha256"]
    cut_points = find_family(settings["family"]).cut_points(model)
    branches = branches_of(snakemake.wildcards.model, model, cut_points)
    batches = images.batches(rows, lesion["batch_size"], settings["mean"], settings["std"])
    clean, without = correctness(
        model, list(branches.values()), batches, labels, pick_device(snakemake.params.device)
    )
    blocks = read_table("blocks", snakemake.input.blocks)
    write_table(
        "lesion",
        lesion_table(blocks, list(branches), clean, without, **snakemake.params.bootstrap),
        snakemake.output.lesion,
        {"data_sha256": images.digest, "checkpoint_sha256": digest},
    )
