"""Landscape: the loss on a plane of weights, some rows of the grid per job, then merged."""


rule measure_landscape:
    input:
        checkpoint=rules.convert_checkpoint.output.checkpoint,
        images=rules.augment_images.output.images,
    output:
        landscape="<results>/{study}/landscape/{model}/{part}.parquet",
    log:
        "<logs>/{study}/landscape/{model}/{part}.log",
    benchmark:
        "<benchmarks>/{study}/landscape/{model}/{part}.tsv"
    wildcard_constraints:
        part=r"\d+",
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=memory_of_landscape,
        runtime=minutes_of(passes_of_landscape),
        gpu=gpu_of,
    params:
        code=family_code("measure_landscape"),
        model=network_of,
        landscape=landscape_of,
        rows=rows_of_landscape,
        device=lambda wildcards: study_of(wildcards).settings["device"],
    message:
        "Measuring the loss around {wildcards.model}, part {wildcards.part}"
    script:
        "../scripts/measure_landscape.py"


rule merge_landscape:
    input:
        parts=parts_of_landscape,
    output:
        landscape="<results>/{study}/landscape/{model}.parquet",
    log:
        "<logs>/{study}/landscape/{model}.log",
    benchmark:
        "<benchmarks>/{study}/landscape/{model}.tsv"
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        code=code("merge_landscape"),
    message:
        "Merging the landscape of {wildcards.model}"
    script:
        "../scripts/merge_landscape.py"
