"""Measure a model on images, as a whole or a part of what there is to measure."""

from scripts._job import job, room
from vitscope.corruptions.corrupted import Corrupted
from vitscope.data.split import Split
from vitscope.files.tables import read_warnings, warned
from vitscope.measures.given import OnModel
from vitscope.measures.merging import part_columns
from vitscope.networks.checkpoints.loading import load_model, read_origin
from vitscope.networks.finding.block_table import BLOCKS, read_cut_points
from vitscope.networks.running.device import pick_device
from vitscope.networks.running.prediction_table import PREDICTIONS
from vitscope.training.augmented import Augmented

with job(snakemake, batches=snakemake.params.batches):
    inputs, settings = snakemake.input, snakemake.params.model
    network = load_model(inputs.checkpoint, settings)
    images = Split(inputs.images)
    predictions, alike = inputs.get("predictions"), inputs.get("alike")
    alike = Augmented(alike) if alike else None
    given = OnModel(
        model=snakemake.wildcards.model,
        network=network,
        cut_points=read_cut_points(inputs.blocks),
        images=images,
        device=pick_device(snakemake.params.device),
        settings=settings,
        batch_size=snakemake.params.batch_size,
        blocks=BLOCKS.read(inputs.blocks),
        predictions=PREDICTIONS.read(predictions) if predictions else None,
        corrupted=[Corrupted(path) for path in inputs.get("corrupted", [])],
        alike=alike,
    )
    table = room(snakemake, "compute").measure(given, **snakemake.params.settings)
    origin = {
        "data_sha256": images.digest,
        "checkpoint_sha256": read_origin(inputs.checkpoint)["source_sha256"],
    }
    origin |= warned([*read_warnings([predictions] if predictions else []), *given.warnings])
    if alike:
        origin["training_sha256"] = alike.metadata["data_sha256"]
    columns = part_columns(room(snakemake, "table"))
    columns.write(table, snakemake.output.table, origin)
