"""Measures of latents, predictions, a model, its loss, its network, or its weights in training.

The parts of a table are merged. What a measure declares decides which rule makes its table.

The wildcard `measure` is the name of a measure and of its table. In paths of tables of two
or three models, all of their names, as in `resnet+vit`, take the place of a model's name.
"""


rule measure_model:
    """Measure a model: run the function that `Measure(measure=...)` names in the measure's folder.

    Its inputs are those of the kind that the measure `needs`, by vitscope/measures/needs.py.
    """
    input:
        unpack(inputs_of_measure),
    output:
        table="<results>/{study}/{measure}/{model}.parquet",
    log:
        "<logs>/{study}/{measure}/{model}.log",
    benchmark:
        "<benchmarks>/{study}/{measure}/{model}.tsv"
    wildcard_constraints:
        measure=measures_that(torch=True, models=1, in_parts=False, of_latents=False),
    conda:
        "../envs/torch.yaml"
    resources:
        **requests_of("measure"),
        gpu=lambda wildcards: int(measure_of(wildcards).need.runs) and gpu_of(wildcards),
    params:
        **values_and_code_of("measure"),
    message:
        "Measuring {wildcards.measure} of {wildcards.model}"
    script:
        "../scripts/measure.py"


use rule measure_model as measure_line with:
    """Measure the line or plane between the weights of models, whose names are one, as `a+b`."""
    wildcard_constraints:
        measure=measures_that(needs="line"),
        model=r"[^/.]+",


use rule measure_model as measure_model_part with:
    """Measure a part of what a table says of a model, such as some of its images."""
    output:
        table="<results>/{study}/{measure}/{model}/{part}.parquet",
    log:
        "<logs>/{study}/{measure}/{model}/{part}.log",
    benchmark:
        "<benchmarks>/{study}/{measure}/{model}/{part}.tsv"
    wildcard_constraints:
        measure=measures_that(torch=True, in_parts=True, of_training=False, of_latents=False),
    message:
        "Measuring {wildcards.measure} of {wildcards.model}, part {wildcards.part}"


use rule measure_model as measure_loss with:
    """Measure a part of what a table says of the loss of a model, at one of its snapshots."""
    output:
        part="<results>/{study}/{measure}/{model}/{snapshot}/{part}.parquet",
    log:
        "<logs>/{study}/{measure}/{model}/{snapshot}/{part}.log",
    benchmark:
        "<benchmarks>/{study}/{measure}/{model}/{snapshot}/{part}.tsv"
    wildcard_constraints:
        measure=measures_that(of_training=True, in_parts=True, of_latents=False),
    message:
        "Measuring {wildcards.measure} of {wildcards.model} at {wildcards.snapshot}, "
        "part {wildcards.part}"


rule measure_predictions:
    """Measure the predictions of a model, which needs no torch."""
    input:
        unpack(inputs_of_measure),
    output:
        table="<results>/{study}/{measure}/{model}.parquet",
    log:
        "<logs>/{study}/{measure}/{model}.log",
    benchmark:
        "<benchmarks>/{study}/{measure}/{model}.tsv"
    wildcard_constraints:
        measure=measures_that(torch=False, in_parts=False, of_latents=False),
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        **values_and_code_of("measure"),
    message:
        "Measuring {wildcards.measure} of {wildcards.model}"
    script:
        "../scripts/measure.py"


rule measure_shard:
    """Measure the latents of one shard of a model, on demand."""
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
    conda:
        "../envs/base.yaml"
    resources:
        **requests_of("measure"),
    params:
        **values_and_code_of("measure"),
    message:
        "Measuring {wildcards.measure} of {wildcards.model}, shard {wildcards.part}"
    script:
        "../scripts/measure.py"


rule merge:
    """Merge the parts of a table, of a model or a pair of models."""
    input:
        unpack(inputs_of_merge),
    output:
        table="<results>/{study}/{measure}/{model}.parquet",
    log:
        "<logs>/{study}/{measure}/{model}.log",
    benchmark:
        "<benchmarks>/{study}/{measure}/{model}.tsv"
    wildcard_constraints:
        measure=measures_that(in_parts=True, of_latents=False),
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        **values_and_code_of("merge"),
    message:
        "Merging {wildcards.measure} of {wildcards.model}"
    script:
        "../scripts/merge.py"


use rule merge as measure_latents with:
    """Merge what passes measured; or measure kept latents, shard by shard, and merge the parts.

    The job `merge` measures the latents that it is given.
    """
    wildcard_constraints:
        measure=measures_that(in_parts=True, of_latents=True),
        model=r"[^/.]+",
    localrule: False
    resources:
        **requests_of("merge"),
    message:
        "Measuring {wildcards.measure} of {wildcards.model}"
