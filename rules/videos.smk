"""Videos: what a network looks at in each frame; in the format that the name of the file ends in.

`figures/{study}/{video}.webp` is a video of that study, `figures/{video}.webp` one of the default.
"""


include: "helpers/videos.smk"


rule draw_video:
    input:
        checkpoint=checkpoint_of_video,
        blocks=blocks_of_video,
        source=source_of_video,
    output:
        video=report(
            "<figures>/{study}/{video}.{format}",
            caption="../report/video.rst",
            category="Videos",
            labels={"result": "{video}", "study": "{study}", "format": "{format}"},
        ),
    log:
        "<logs>/{study}/videos/{video}.{format}.log",
    benchmark:
        "<benchmarks>/{study}/videos/{video}.{format}.tsv"
    conda:
        "../envs/videos.yaml"
    resources:
        mem_mb=megabytes_of("draw_video"),
        runtime=minutes_of("draw_video"),
        gpu=gpu_of,
    params:
        code=code_of("draw_video"),
        model=of_study(params.network_of_video, "video"),
        settings=of_study(params.video, "video"),
        facts=of_study(params.video_facts, "video"),
        listing=of_study(params.frames_listing, "video"),
        device=device_of,
    message:
        "Drawing the video {wildcards.video}"
    script:
        "../scripts/draw_video.py"


use rule draw_video as draw_default_video with:
    output:
        video=report(
            "<figures>/{video}.{format}",
            caption="../report/video.rst",
            category="Videos",
            labels={"result": "{video}", "study": DEFAULT, "format": "{format}"},
        ),
    log:
        f"<logs>/{DEFAULT}/videos/default_{{video}}.{{format}}.log",
    benchmark:
        f"<benchmarks>/{DEFAULT}/videos/default_{{video}}.{{format}}.tsv"
    wildcard_constraints:
        video=one_of(STUDIES[DEFAULT].videos),
