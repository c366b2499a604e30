"""Latents: one forward pass per shard of images fills all cut points.

A shard of latents is large and cheap to make again, so it lives only as long as a measurement
needs it, unless its study keeps it. Where `max_latents_gb` bounds how much of them exists at once,
jobs share the resource `latents_mb`.
"""


rule extract_latents:
    input:
        checkpoint=rules.convert_checkpoint.output.checkpoint,
        blocks=rules.list_blocks.output.blocks,
        images=split_for(None),
    output:
        latents=temp("<results>/{study}/latents/{model}/{shard}.safetensors"),
    log:
        "<logs>/{study}/latents/{model}/{shard}.log",
    benchmark:
        "<benchmarks>/{study}/latents/{model}/{shard}.tsv"
    wildcard_constraints:
        study=one_of(STUDIES.keys() - keeping_latents()),
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=memory_of_passes,
        runtime=minutes_of(passes_of_shard),
        gpu=gpu_of,
        latents_mb=room_to_extract,
    params:
        code=family_code("extract_latents"),
        model=network_of,
        selection=selection_of,
        analysis=analysis_of("batch_size", "latents_dtype"),
        device=lambda wildcards: study_of(wildcards).settings["device"],
    message:
        "Extracting the latents of {wildcards.model}, shard {wildcards.shard}"
    script:
        "../scripts/extract_latents.py"


use rule extract_latents as extract_kept_latents with:
    output:
        latents="<results>/{study}/latents/{model}/{shard}.safetensors",
    wildcard_constraints:
        study=one_of(keeping_latents()),
