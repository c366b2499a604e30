"""Videos, drawn beside what networks compute from them."""


use rule fetch_image as fetch_video with:
    output:
        file="<results>/{study}/downloads/{video}.video",
    log:
        "<logs>/{study}/downloads/{video}.video.log",
    wildcard_constraints:
        video=one_of(names_in("videos")),
    cache: "omit-software"
    localrule: True
    message:
        "Downloading the video {wildcards.video}"


use rule draw_blocks as draw_video with:
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
    resources:
        **requests_of("draw_video"),
        lock=lock_of,
        gpu=gpu_of,
    params:
        **of_job("draw_video"),
    message:
        "Drawing the video {wildcards.video}"
