"""Variance: per shard, then merged per model, then one table of all models of a study."""


rule measure_variance:
    input:
        latents="<results>/{study}/latents/{model}/{shard}.safetensors",
    output:
        variance="<results>/{study}/variance/{model}/{shard}.parquet",
    log:
        "<logs>/{study}/variance/{model}/{shard}.log",
    benchmark:
        "<benchmarks>/{study}/variance/{model}/{shard}.tsv"
    conda:
        "../envs/base.yaml"
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
        variance="<results>/{study}/variance/{model}.parquet",
    log:
        "<logs>/{study}/variance/{model}.log",
    benchmark:
        "<benchmarks>/{study}/variance/{model}.tsv"
    conda:
        "../envs/base.yaml"
    params:
        code=code("merge_variance"),
        bootstrap=lambda wildcards: study_of(wildcards).settings["analysis"]["bootstrap"],
    message:
        "Merging the variance of {wildcards.model}"
    script:
        "../scripts/merge_variance.py"


rule tabulate_variance:
    input:
        models=models_with("feature_variance", rules.merge_variance.output.variance),
    output:
        table="<results>/{study}/tables/feature_variance.parquet",
    log:
        "<logs>/{study}/tables/feature_variance.log",
    benchmark:
        "<benchmarks>/{study}/tables/feature_variance.tsv"
    conda:
        "../envs/base.yaml"
    params:
        code=code("tabulate"),
        table="feature_variance",
    message:
        "Writing the table feature_variance of {wildcards.study}"
    script:
        "../scripts/tabulate.py"
