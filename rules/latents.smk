"""Latents: the feature maps at all cut points, from one forward pass per shard of images.

Kept latents (`analysis.keep_latents`; `auto` keeps up to `keep_latents_gb`) are files, and each
measure reads them. Others are measured while they are in memory, by all measures in one pass, and
written, for a while, only for an export or a part that someone asks for. A part is a shard of
`analysis.shard_size` images.
"""


rule extract_latents:
    """Run a shard of images through a network; write the feature maps at all cut points."""
    input:
        checkpoint=rules.convert_checkpoint.output.checkpoint,
        blocks=rules.convert_checkpoint.output.blocks,
        images=split_for(lambda study: study.analysis.split),
    output:
        latents=temp("<results>/{study}/latents/{model}/not_kept/{part}.safetensors"),
    log:
        "<logs>/{study}/latents/{model}/not_kept/{part}.log",
    benchmark:
        "<benchmarks>/{study}/latents/{model}/not_kept/{part}.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        **requests_of("extract_latents"),
        gpu=gpu_of,
    params:
        **values_and_code_of("extract_latents"),
    message:
        "Extracting the latents of {wildcards.model}, shard {wildcards.part}"
    script:
        "../scripts/extract_latents.py"


use rule extract_latents as extract_kept_latents with:
    output:
        latents="<results>/{study}/latents/{model}/{part}.safetensors",
    log:
        "<logs>/{study}/latents/{model}/{part}.log",
    benchmark:
        "<benchmarks>/{study}/latents/{model}/{part}.tsv"


rule measure_pass:
    """Run a shard of images through a network; write what each measure finds in the feature maps.

    The measures are those of feature maps that figures of the study need for this model; the file
    has a part of the table of each. A change of one measures all anew. It takes the place of
    `extract_kept_latents` where latents are not kept.
    """
    input:
        checkpoint=rules.convert_checkpoint.output.checkpoint,
        blocks=rules.convert_checkpoint.output.blocks,
        images=split_for(lambda study: study.analysis.split),
    output:
        parts="<results>/{study}/passes/{model}/{part}.parquet",
    log:
        "<logs>/{study}/passes/{model}/{part}.log",
    benchmark:
        "<benchmarks>/{study}/passes/{model}/{part}.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        **requests_of("measure_pass"),
        gpu=gpu_of,
    params:
        **values_and_code_of("measure_pass"),
    message:
        "Measuring the feature maps of {wildcards.model}, shard {wildcards.part}"
    script:
        "../scripts/measure_pass.py"


rule export_latents:
    """Write all latents of a model as one file for other programs, on demand."""
    input:
        latents=shards_of_latents,
        blocks=rules.convert_checkpoint.output.blocks,
        images=split_for(lambda study: study.analysis.split),
    output:
        latents="<results>/{study}/latents/{model}.{container}",
    log:
        "<logs>/{study}/latents/{model}.{container}.log",
    wildcard_constraints:
        container=one_of(LATENTS_FORMATS.values()),
    conda:
        "../envs/base.yaml"
    resources:
        **requests_of("export_latents"),
    params:
        **values_and_code_of("export_latents"),
    message:
        "Writing the latents of {wildcards.model} as {wildcards.container}"
    script:
        "../scripts/export_latents.py"
