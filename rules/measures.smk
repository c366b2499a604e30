"""Measures of latents, predictions, a model, its loss, its network, or its weights in training.

Parts are merged to a table.

The wildcard `measure` is the name of a measure, and of its table. A table of a pair of models has
the name of the pair, such as `resnet+vit`, in place of the name of a model.
"""


rule measure_latents:
    input:
        latents="<results>/{study}/latents/{model}/{part}.safetensors",
    output:
        part="<results>/{study}/{measure}/{model}/{part}.parquet",
    log:
        "<logs>/{study}/{measure}/{model}/{part}.log",
    benchmark:
        "<benchmarks>/{study}/{measure}/{model}/{part}.tsv"
    wildcard_constraints:
        measure=measures_that(needs="latents", in_parts=True),
    conda:
        "../envs/base.yaml"
    resources:
        **requests_of("measure_latents"),
    params:
        **of_job("measure_latents"),
    message:
        "Measuring {wildcards.measure} of {wildcards.model}, shard {wildcards.part}"
    script:
        "../scripts/run_job.py"


rule measure_model:
    input:
        unpack(read_besides),
        checkpoint=rules.convert_checkpoint.output.checkpoint,
        blocks=rules.list_blocks.output.blocks,
        images=images_of,
    output:
        table="<results>/{study}/{measure}/{model}.parquet",
    log:
        "<logs>/{study}/{measure}/{model}.log",
    benchmark:
        "<benchmarks>/{study}/{measure}/{model}.tsv"
    wildcard_constraints:
        measure=measures_that(needs="model"),
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **requests_of("measure_model"),
        gpu=gpu_of,
    params:
        **of_job("measure_model"),
    message:
        "Measuring {wildcards.measure} of {wildcards.model}"
    script:
        "../scripts/run_job.py"


use rule measure_model as measure_model_part with:
    output:
        table="<results>/{study}/{measure}/{model}/{part}.parquet",
    log:
        "<logs>/{study}/{measure}/{model}/{part}.log",
    benchmark:
        "<benchmarks>/{study}/{measure}/{model}/{part}.tsv"
    wildcard_constraints:
        measure=measures_that(needs="model", in_parts=True),
    message:
        "Measuring {wildcards.measure} of {wildcards.model}, part {wildcards.part}"


use rule measure_model as measure_network with:
    input:
        checkpoint=rules.convert_checkpoint.output.checkpoint,
    wildcard_constraints:
        measure=measures_that(needs="network"),
    resources:
        **requests_of("measure_network"),
    params:
        **of_job("measure_network"),


use rule measure_model as measure_weights with:
    input:
        unpack(moments_of),
    wildcard_constraints:
        measure=measures_that(needs="weights"),
    resources:
        **requests_of("measure_weights"),
    params:
        **of_job("measure_weights"),


rule measure_loss:
    input:
        checkpoint=lambda wildcards: weights_at(wildcards.snapshot, wildcards),
        blocks=rules.list_blocks.output.blocks,
        images=rules.augment_images.output.images,
    output:
        part="<results>/{study}/{measure}/{model}/{snapshot}/{part}.parquet",
    log:
        "<logs>/{study}/{measure}/{model}/{snapshot}/{part}.log",
    benchmark:
        "<benchmarks>/{study}/{measure}/{model}/{snapshot}/{part}.tsv"
    wildcard_constraints:
        measure=measures_that(needs="loss", in_parts=True),
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        **requests_of("measure_loss"),
        gpu=gpu_of,
    params:
        **of_job("measure_loss"),
    message:
        "Measuring {wildcards.measure} of {wildcards.model} at {wildcards.snapshot}, "
        "part {wildcards.part}"
    script:
        "../scripts/run_job.py"


rule merge:
    input:
        unpack(to_merge),
    output:
        table="<results>/{study}/{measure}/{model}.parquet",
    log:
        "<logs>/{study}/{measure}/{model}.log",
    benchmark:
        "<benchmarks>/{study}/{measure}/{model}.tsv"
    wildcard_constraints:
        measure=measures_that(in_parts=True, of_pairs=False),
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
        predictions=predictions_of,
        images=images_of,
    wildcard_constraints:
        measure=measures_that(needs="predictions"),
    localrule: True
    params:
        **of_job("measure_predictions"),
    message:
        "Measuring {wildcards.measure} of {wildcards.model}"


use rule merge as merge_pair with:
    wildcard_constraints:
        measure=measures_that(in_parts=True, of_pairs=True),
        model=one_of(named_by(Study.pairs)),
    localrule: True
