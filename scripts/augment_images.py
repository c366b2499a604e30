"""Draw augmented training images once, by the recipe that a model was trained by."""

from scripts._job import job
from vitscope.data.split import Split
from vitscope.training.augmenting import augment_images

with job(snakemake, batches="training.batch_size"):
    augment_images(
        Split(snakemake.input.images),
        snakemake.params.recipe,
        path=snakemake.output.images,
        mean=snakemake.params.model["mean"],
        std=snakemake.params.model["std"],
        **snakemake.params.drawing,
    )
