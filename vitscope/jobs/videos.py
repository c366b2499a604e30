"""The job of videos: draw a video beside what a model computes from each frame."""

from dataclasses import asdict
from functools import partial
from pathlib import Path

from vitscope.data.opening import listing_digest
from vitscope.jobs import describing
from vitscope.jobs.job import Files, Job, Names, Request, Resources, Study, Takes, Values
from vitscope.jobs.networks import with_network
from vitscope.measures import registry
from vitscope.measures.tokens.measure import FRAMES_TOGETHER
from vitscope.measures.work import Work
from vitscope.settings.section import result_settings
from vitscope.web import redact

# The number of frames to assume if it is unknown: a minute or two of video.
UNCOUNTED_FRAMES = 2000
# Seconds to draw and write 13 panels of 224x224, besides the pass.
SECONDS_PER_FRAME = 0.2


def source_path(study: Study, name: str) -> Path | None:
    """Return the path of a video's frames if they are on this machine, else None."""
    source = study.videos[name].source
    return Path(source["path"]).expanduser() if "path" in source else None


def _facts_of_video(study: Study, name: str) -> dict[str, str]:
    path, entry = source_path(study, name), study.videos[name]
    made = redact(entry.source["url"]) if "url" in entry.source else "generated, shapes32"
    made_from = {"Study": describing.title(study), "Frames": path.name if path else made}
    return made_from | describing.describe_weights(study.models[entry.model])


def _values_of_video_job(study: Study, names: Names) -> Values:
    name = names["video"]
    entry, path = study.videos[name], source_path(study, name)
    settings, data = asdict(entry), study.dataset_of(entry.model)
    if entry.shows == "components":
        settings["token_pca"] = result_settings(registry.declared("token_pca").read_settings(study))
    return {
        "where": f"videos.{name}",
        **with_network(study, entry.model),
        "settings": settings,
        "label": study.models[entry.model].label,
        "taking": {
            "channels": data.channels,
            "image_size": data.image_size,
            "resize": data.resize or "cover",
            "interpolation": data.interpolation,
        },
        "facts": _facts_of_video(study, name),
        # A folder's date does not show whether its content has changed.
        "listing": None if path is None else listing_digest(path),
        "device": study.device,
    }


def _passes_of_video_job(request: Request) -> Work:
    video = request.study.videos[request.names["video"]]
    frames = video.frames or UNCOUNTED_FRAMES
    if "generated" in video.source:
        # Imported here because it imports NumPy.
        from vitscope.video.frames import FRAMES

        frames = min(frames, FRAMES)
    ahead = min(frames, FRAMES_TOGETHER) if video.shows == "components" else 0
    return Work(frames + ahead, 1, most=True)


def draw_video_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.files.whole import sha256_of
    from vitscope.jobs.opening import open_job_device, open_network, origin_of_opened_checkpoint
    from vitscope.networks.finding.cut_points import BLOCKS, read_cut_points
    from vitscope.video.frames import open_study_video_frames
    from vitscope.video.showing import show
    from vitscope.video.views import Subject
    from vitscope.web.lockfile import confirm_by_lock

    settings = values["settings"]
    subject = Subject(
        model=settings["model"],
        label=values["label"],
        network=open_network(inputs["checkpoint"], values["network"]),
        cut_points=read_cut_points(inputs["blocks"]),
        blocks=BLOCKS.read(inputs["blocks"]),
        settings=values["network"],
        taking=values["taking"],
        device=open_job_device(values["device"]),
    )
    digest = origin_of_opened_checkpoint(inputs["checkpoint"]).get("checkpoint_sha256")
    facts = values["facts"] | ({f"Checkpoint SHA-256 of {subject.label}": digest} if digest else {})
    path = Path(inputs["source"]) if inputs["source"] else None
    if path and "url" in settings["source"]:
        confirm_by_lock(settings["source"], path, Path(resources.lock), label=values["where"])
    if path and path.is_file():
        facts["Frames SHA-256"] = sha256_of(path)
    opened = partial(open_study_video_frames, path, settings["frames_per_second"])
    output, where = Path(outputs["video"]), values["where"]
    for warning in show(subject, opened, output, settings, facts, where=where, say=resources.say):
        resources.warn(warning)


DRAW_VIDEO = Job(
    run=draw_video_job,
    values=_values_of_video_job,
    takes=Takes(
        torch=True,
        work=_passes_of_video_job,
        seconds=lambda request: SECONDS_PER_FRAME * _passes_of_video_job(request).passes,
    ),
)
