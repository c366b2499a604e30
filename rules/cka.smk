"""CKA: the similarity of the feature maps of all pairs of cut points, per shard, then merged."""


rule measure_cka:
    input:
        latents="<results>/{study}/latents/{model}/{shard}.safetensors",
    output:
        hsic="<results>/{study}/cka/{model}/{shard}.parquet",
    log:
        "<logs>/{study}/cka/{model}/{shard}.log",
    benchmark:
        "<benchmarks>/{study}/cka/{model}/{shard}.tsv"
    priority: 1
    conda:
        "../envs/base.yaml"
    resources:
        mem_mb=memory_of_arrays,
        runtime=minutes_of_latents,
        latents_mb=room_to_measure,
    params:
        code=code("measure_cka"),
        analysis=analysis_of("shard_size"),
        batch_size=lambda wildcards: study_of(wildcards).cka_batch(wildcards.model),
    message:
        "Measuring the CKA of {wildcards.model}, shard {wildcards.shard}"
    script:
        "../scripts/measure_cka.py"


rule merge_cka:
    input:
        shards=shards_of(rules.measure_cka.output.hsic),
    output:
        cka="<results>/{study}/cka/{model}.parquet",
    log:
        "<logs>/{study}/cka/{model}.log",
    benchmark:
        "<benchmarks>/{study}/cka/{model}.tsv"
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        code=code("merge_cka"),
    message:
        "Merging the CKA of {wildcards.model}"
    script:
        "../scripts/merge_cka.py"
