"""Lesions: the accuracy without one residual branch."""


rule measure_lesions:
    input:
        checkpoint=rules.convert_checkpoint.output.checkpoint,
        blocks=rules.list_blocks.output.blocks,
        images=split_for(None),
    output:
        lesion="<results>/{study}/lesion/{model}.parquet",
    log:
        "<logs>/{study}/lesion/{model}.log",
    benchmark:
        "<benchmarks>/{study}/lesion/{model}.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=memory_of_lesions,
        runtime=minutes_of(passes_of_lesions),
        gpu=gpu_of,
    params:
        code=family_code("measure_lesions"),
        model=network_of,
        lesion=probing("lesion"),
        bootstrap=lambda wildcards: study_of(wildcards).settings["analysis"]["bootstrap"],
        device=lambda wildcards: study_of(wildcards).settings["device"],
    message:
        "Removing the units of {wildcards.model} one by one"
    script:
        "../scripts/measure_lesions.py"
