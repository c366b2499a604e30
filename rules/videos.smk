"""Videos, drawn beside what networks compute from them."""

from vitscope.jobs.videos import source_path


rule fetch_video:
    """Download a video by its address; its digest goes to the lock file of the study."""
    output:
        file="<results>/{study}/downloads/{video}.video",
    log:
        "<logs>/{study}/downloads/{video}.video.log",
    wildcard_constraints:
        video=one_of(names_in("videos")),
    cache: "omit-software"
    localrule: True
    conda:
        "../envs/base.yaml"
    resources:
        lock_file=lock_file_of,
    params:
        **values_and_code_of("fetch_file"),
    message:
        "Downloading the video {wildcards.video}"
    script:
        "../scripts/fetch_file.py"


def output_of_model(output):
    """Return a function that finds the output of a rule for the model that a job is about."""

    def path_for_model(wildcards):
        model = model_of(study_of(wildcards), names_of(wildcards))
        return path_of(output, wildcards, model=model)

    return path_for_model


def source_of_video(wildcards):
    """Return the folder or file of the frames, or its download; [] if they are generated."""
    study, name = study_of(wildcards), names_of(wildcards)["video"]
    if "url" in study.videos[name].source:
        return path_of(rules.fetch_video.output.file, wildcards)
    return given_file(study, f"videos.{name}.source.path", source_path(study, name))


rule draw_video:
    """Draw what a network computes from each frame; the suffix of the file tells the format."""
    input:
        checkpoint=output_of_model(rules.convert_checkpoint.output.checkpoint),
        blocks=output_of_model(rules.convert_checkpoint.output.blocks),
        source=source_of_video,
    output:
        video=report(
            "<figures>/{video}.{format}",
            caption="../report/video.rst",
            category="Videos",
            labels=labels_of_shown,
        ),
    log:
        "<logs>/figures/{video}.{format}.log",
    benchmark:
        "<benchmarks>/figures/{video}.{format}.tsv"
    wildcard_constraints:
        video=shown_in("videos"),
    conda:
        "../envs/videos.yaml"
    resources:
        **requests_of("draw_video"),
        lock_file=lock_file_of,
        gpu=gpu_of,
    params:
        **values_and_code_of("draw_video"),
    message:
        "Drawing the video {wildcards.video}"
    script:
        "../scripts/draw_video.py"
