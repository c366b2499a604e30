"""Fit: the error on test images, and the loss on training images that are augmented alike."""


use rule augment_images as augment_alike with:
    output:
        images="<results>/{study}/augmented/alike/{model}.safetensors",
    log:
        "<logs>/{study}/augmented/alike/{model}.log",
    benchmark:
        "<benchmarks>/{study}/augmented/alike/{model}.tsv"
    resources:
        mem_mb=memory_of_drawing,
        runtime=minutes_of_augmenting("fit"),
    params:
        recipe=alike_of,
        drawing=drawing_alike,
    message:
        "Augmenting training images for {wildcards.model} and models like it"


rule measure_fit:
    input:
        checkpoint=rules.convert_checkpoint.output.checkpoint,
        images=alike_images,
        predictions=predictions_for("fit"),
    output:
        fit="<results>/{study}/fit/{model}.parquet",
    log:
        "<logs>/{study}/fit/{model}.log",
    benchmark:
        "<benchmarks>/{study}/fit/{model}.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=memory_of_passes,
        runtime=minutes_of(passes_of_fit),
        gpu=gpu_of,
    params:
        code=family_code("measure_fit"),
        model=network_of,
        analysis=analysis_of("batch_size", "bootstrap"),
        device=lambda wildcards: study_of(wildcards).settings["device"],
    message:
        "Measuring the error and the training loss of {wildcards.model}"
    script:
        "../scripts/measure_fit.py"
