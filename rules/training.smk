"""Training: the models of a study from nothing, and the images that they are trained on."""


include: "helpers/training.smk"


rule train_model:
    """Weights at moments of a training, and its table; `unfinished/` beside them, while it runs.

    That folder is no output, which Snakemake would delete: by it, a job that was broken off goes on.
    """
    input:
        train=split_for("train"),
        test=split_for("test"),
    output:
        init="<results>/{study}/training/{model}/init.safetensors",
        warmup="<results>/{study}/training/{model}/warmup.safetensors",
        end="<results>/{study}/training/{model}/end.safetensors",
        epochs=directory("<results>/{study}/training/{model}/epochs"),
        history="<results>/{study}/training/{model}/history.parquet",
    log:
        "<logs>/{study}/training/{model}.log",
    benchmark:
        "<benchmarks>/{study}/training/{model}.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=megabytes_of("train_model", most=2),
        runtime=minutes_of("train_model"),
        gpu=gpu_of,
    params:
        code=code_of("train_model"),
        model=of_study(Study.network, "model"),
        recipe=of_study(params.recipe, "model"),
        device=device_of,
    message:
        "Training {wildcards.model}"
    script:
        "../scripts/train_model.py"


rule take_snapshot:
    """The weights after an epoch that the recipe lists, as a file that others can ask for."""
    input:
        epochs=rules.train_model.output.epochs,
    output:
        weights="<results>/{study}/training/{model}/epoch_{epoch}.safetensors",
    log:
        "<logs>/{study}/training/{model}/epoch_{epoch}.log",
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        code=code_of("take_snapshot"),
        taken=of_study(params.snapshot, "model", "epoch"),
    message:
        "Taking the snapshot of {wildcards.model} after epoch {wildcards.epoch}"
    script:
        "../scripts/take_snapshot.py"


rule augment_images:
    """Images drawn once by the training recipe of a model, for all that measures its loss."""
    input:
        images=split_for(lambda study: study.analysis.augmented.split),
    output:
        images="<results>/{study}/augmented/{model}.safetensors",
    log:
        "<logs>/{study}/augmented/{model}.log",
    benchmark:
        "<benchmarks>/{study}/augmented/{model}.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=megabytes_of("augment_images"),
        runtime=minutes_of("augment_images"),
    params:
        code=code_of("augment_images"),
        model=of_study(Study.network, "model"),
        recipe=of_study(params.augmentation, "model"),
        drawing=of_study(params.drawing),
    message:
        "Augmenting training images for {wildcards.model}"
    script:
        "../scripts/augment_images.py"


use rule augment_images as augment_alike with:
    output:
        images="<results>/{study}/augmented/alike/{model}.safetensors",
    log:
        "<logs>/{study}/augmented/alike/{model}.log",
    benchmark:
        "<benchmarks>/{study}/augmented/alike/{model}.tsv"
    resources:
        mem_mb=megabytes_of("augment_alike"),
        runtime=minutes_of("augment_alike"),
    params:
        recipe=of_study(params.alike, "model"),
        drawing=of_study(params.drawing_alike),
    message:
        "Augmenting training images for {wildcards.model} and models like it"


rule train_mini:
    """Train every bundled model again and put weights and histories in their place."""
    input:
        bundled_outputs("mini"),
    output:
        touch("<results>/mini/training/bundled"),
    log:
        "<logs>/mini/training/bundled.log",
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        code=code_of("train_mini"),
        folder=str(ROOT / "resources" / "checkpoints" / "mini"),
        names=lambda wildcards, input: [bundled_name(path) for path in input],
    message:
        "Writing resources/checkpoints/mini"
    script:
        "../scripts/bundle_weights.py"
