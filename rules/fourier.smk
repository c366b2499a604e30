"""Fourier: amplitudes along the half-diagonal, and the whole spectrum, per shard, then merged."""


rule measure_diagonal:
    input:
        latents="<results>/{study}/latents/{model}/{shard}.safetensors",
    output:
        diagonal="<results>/{study}/fourier/{model}/diagonal/{shard}.parquet",
    log:
        "<logs>/{study}/fourier/{model}/diagonal/{shard}.log",
    benchmark:
        "<benchmarks>/{study}/fourier/{model}/diagonal/{shard}.tsv"
    priority: 1
    conda:
        "../envs/base.yaml"
    resources:
        mem_mb=memory_of_arrays,
        runtime=minutes_of_latents,
        latents_mb=room_to_measure,
    params:
        code=code("measure_diagonal"),
        analysis=analysis_of("shard_size"),
    message:
        "Measuring the Fourier amplitudes of {wildcards.model}, shard {wildcards.shard}"
    script:
        "../scripts/measure_diagonal.py"


rule measure_spectrum:
    input:
        latents="<results>/{study}/latents/{model}/{shard}.safetensors",
    output:
        radial="<results>/{study}/fourier/{model}/radial/{shard}.parquet",
        bands="<results>/{study}/spectrum/{model}/{shard}.parquet",
    log:
        "<logs>/{study}/spectrum/{model}/{shard}.log",
    benchmark:
        "<benchmarks>/{study}/spectrum/{model}/{shard}.tsv"
    priority: 1
    conda:
        "../envs/base.yaml"
    resources:
        mem_mb=memory_of_arrays,
        runtime=minutes_of_latents,
        latents_mb=room_to_measure,
    params:
        code=code("measure_spectrum"),
        analysis=analysis_of("shard_size", "fourier", "spectrum"),
    message:
        "Measuring the whole spectrum of {wildcards.model}, shard {wildcards.shard}"
    script:
        "../scripts/measure_spectrum.py"


rule merge_fourier:
    input:
        blocks=rules.list_blocks.output.blocks,
        diagonal=shards_of(rules.measure_diagonal.output.diagonal),
        radial=radial_profiles,
    output:
        fourier="<results>/{study}/fourier/{model}.parquet",
    log:
        "<logs>/{study}/fourier/{model}.log",
    benchmark:
        "<benchmarks>/{study}/fourier/{model}.tsv"
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        code=code("merge_fourier"),
        bootstrap=lambda wildcards: study_of(wildcards).settings["analysis"]["bootstrap"],
    message:
        "Merging the Fourier amplitudes of {wildcards.model}"
    script:
        "../scripts/merge_fourier.py"


rule merge_spectrum:
    input:
        blocks=rules.list_blocks.output.blocks,
        shards=shards_of(rules.measure_spectrum.output.bands),
    output:
        spectrum="<results>/{study}/spectrum/{model}.parquet",
    log:
        "<logs>/{study}/spectrum/{model}.log",
    benchmark:
        "<benchmarks>/{study}/spectrum/{model}.tsv"
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        code=code("merge_spectrum"),
        analysis=analysis_of("bootstrap", "spectrum"),
    message:
        "Merging the spectrum of {wildcards.model}"
    script:
        "../scripts/merge_spectrum.py"
