"""Variance: per shard, then merged per model."""


rule measure_variance:
    input:
        latents="<results>/{study}/latents/{model}/{shard}.safetensors",
    output:
        variance="<results>/{study}/feature_variance/{model}/{shard}.parquet",
    log:
        "<logs>/{study}/feature_variance/{model}/{shard}.log",
    benchmark:
        "<benchmarks>/{study}/feature_variance/{model}/{shard}.tsv"
    priority: 1
    conda:
        "../envs/base.yaml"
    resources:
        mem_mb=memory_of_arrays,
        runtime=minutes_of_latents,
        latents_mb=room_to_measure,
    params:
        code=code("measure_variance"),
        analysis=analysis_of("shard_size"),
    message:
        "Measuring the variance of {wildcards.model}, shard {wildcards.shard}"
    script:
        "../scripts/measure_variance.py"


rule merge_variance:
    input:
        blocks=rules.list_blocks.output.blocks,
        shards=shards_of(rules.measure_variance.output.variance),
    output:
        variance="<results>/{study}/feature_variance/{model}.parquet",
    log:
        "<logs>/{study}/feature_variance/{model}.log",
    benchmark:
        "<benchmarks>/{study}/feature_variance/{model}.tsv"
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        code=code("merge_variance"),
        bootstrap=lambda wildcards: study_of(wildcards).settings["analysis"]["bootstrap"],
    message:
        "Merging the variance of {wildcards.model}"
    script:
        "../scripts/merge_variance.py"
