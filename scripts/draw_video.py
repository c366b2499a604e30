"""Draw what a model looks at in a video, frame by frame."""

from pathlib import Path

from scripts._job import job
from vitscope.files.whole import sha256_of
from vitscope.networks.checkpoints.loading import load_model, read_origin
from vitscope.networks.finding.block_table import read_cut_points
from vitscope.networks.running.device import pick_device
from vitscope.video.reading import open_source
from vitscope.video.showing import show
from vitscope.video.views import Subject

with job(snakemake):
    inputs, params = snakemake.input, snakemake.params
    settings, name = params.settings, snakemake.wildcards.video
    subject = Subject(
        model=settings["model"],
        label=settings["label"],
        network=load_model(inputs.checkpoint, params.model),
        cut_points=read_cut_points(inputs.blocks),
        settings=params.model,
        taking=settings["taking"],
        device=pick_device(params.device),
    )
    facts = dict(params.facts)
    origin = read_origin(inputs.checkpoint)["source_sha256"]
    facts[f"Checkpoint SHA-256 of {subject.label}"] = origin
    path = Path(inputs.source) if inputs.source else None
    if path and path.is_file():
        facts["Frames SHA-256"] = sha256_of(path)
    video = open_source(path, settings["source"], settings["frames_per_second"])
    output = Path(snakemake.output.video)
    for warning in show(subject, video, output, settings, facts, where=f"videos.{name}"):
        print(f"warning: {warning}")
