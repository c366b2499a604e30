"""Measures of latents, predictions, a model, its loss, its network, or its weights in training.

The parts of a table are merged.

The wildcard `measure` is the name of a measure and of its table. In paths of tables of a pair of
models, the name of the pair, such as `resnet+vit`, takes the place of a model's name.
"""


use rule extract_latents as measure_model with:
    input:
        unpack(inputs_of_measure),
    output:
        table="<results>/{study}/{measure}/{model}.parquet",
    log:
        "<logs>/{study}/{measure}/{model}.log",
    benchmark:
        "<benchmarks>/{study}/{measure}/{model}.tsv"
    wildcard_constraints:
        measure=measures_that(torch=True),
    resources:
        **requests_of("measure"),
        gpu=lambda wildcards: int(measure_of(wildcards).need.runs) and gpu_of(wildcards),
    params:
        **of_job("measure"),
    message:
        "Measuring {wildcards.measure} of {wildcards.model}"


use rule measure_model as measure_model_part with:
    output:
        table="<results>/{study}/{measure}/{model}/{part}.parquet",
    log:
        "<logs>/{study}/{measure}/{model}/{part}.log",
    benchmark:
        "<benchmarks>/{study}/{measure}/{model}/{part}.tsv"
    wildcard_constraints:
        measure=measures_that(torch=True, in_parts=True, of_training=False),
    message:
        "Measuring {wildcards.measure} of {wildcards.model}, part {wildcards.part}"


use rule measure_model as measure_loss with:
    output:
        part="<results>/{study}/{measure}/{model}/{snapshot}/{part}.parquet",
    log:
        "<logs>/{study}/{measure}/{model}/{snapshot}/{part}.log",
    benchmark:
        "<benchmarks>/{study}/{measure}/{model}/{snapshot}/{part}.tsv"
    wildcard_constraints:
        measure=measures_that(of_training=True, in_parts=True),
    message:
        "Measuring {wildcards.measure} of {wildcards.model} at {wildcards.snapshot}, "
        "part {wildcards.part}"


rule merge:
    input:
        unpack(inputs_of_merge),
    output:
        table="<results>/{study}/{measure}/{model}.parquet",
    log:
        "<logs>/{study}/{measure}/{model}.log",
    benchmark:
        "<benchmarks>/{study}/{measure}/{model}.tsv"
    wildcard_constraints:
        measure=measures_that(in_parts=True),
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        **of_job("merge"),
    message:
        "Merging {wildcards.measure} of {wildcards.model}"
    script:
        "../scripts/run_job.py"


use rule merge as measure_predictions with:
    input:
        unpack(inputs_of_measure),
    wildcard_constraints:
        measure=measures_that(torch=False),
    localrule: True
    params:
        **of_job("measure"),
    message:
        "Measuring {wildcards.measure} of {wildcards.model}"


use rule merge as measure_latents with:
    """Measure the latents of a model or a pair, shard by shard, or merge what passes measured."""
    wildcard_constraints:
        measure=measures_that(in_parts=True, of_latents=True),
        model=one_of(names_in("models") | named_by(Study.pairs)),
    resources:
        **requests_of("merge"),
    message:
        "Measuring {wildcards.measure} of {wildcards.model}"


use rule merge as measure_shard with:
    """Measure the latents of one shard of a model, on demand, with a row for each image."""
    input:
        unpack(inputs_of_measure),
    output:
        part="<results>/{study}/{measure}/{model}/{part}.parquet",
    log:
        "<logs>/{study}/{measure}/{model}/{part}.log",
    benchmark:
        "<benchmarks>/{study}/{measure}/{model}/{part}.tsv"
    wildcard_constraints:
        measure=measures_that(needs="latents", in_parts=True, of_latents=True),
    resources:
        **requests_of("measure"),
    params:
        **of_job("measure"),
    message:
        "Measuring {wildcards.measure} of {wildcards.model}, shard {wildcards.part}"
