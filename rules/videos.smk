"""Videos, drawn beside what networks compute from them."""


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
