"""Training: the models of a study from scratch, and the images that they are trained on."""


rule train_model:
    """Train a model, and write its snapshots and its table.

    While the job runs, the folder `unfinished/` is beside them. It is not an output, since
    Snakemake would delete it: a stopped job resumes from it. Any change of the network, of
    `training` (its `snapshots` too), of `device` or of the code of training trains anew.
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
    # Named like the first output, as `vitscope plan` looks for it.
    benchmark:
        "<benchmarks>/{study}/training/{model}/init.tsv"
    wildcard_constraints:
        model=MODELS,
    conda:
        "../envs/torch.yaml"
    resources:
        **requests_of("train_model", most=2),
        gpu=gpu_of,
    params:
        **values_and_code_of("train_model"),
    message:
        "Training {wildcards.model}"
    script:
        "../scripts/train_model.py"


rule take_snapshot:
    """Take the weights after an epoch that the recipe lists, as a file that other rules can use."""
    input:
        epochs=rules.train_model.output.epochs,
    output:
        weights="<results>/{study}/training/{model}/epoch_{epoch}.safetensors",
    log:
        "<logs>/{study}/training/{model}/epoch_{epoch}.log",
    wildcard_constraints:
        model=MODELS,
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        **values_and_code_of("take_snapshot"),
    message:
        "Taking the snapshot of {wildcards.model} after epoch {wildcards.epoch}"
    script:
        "../scripts/take_snapshot.py"


rule augment_images:
    """Augment images by a training recipe, once for all models that share it."""
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
        **requests_of("augment_images"),
    params:
        **values_and_code_of("augment_images"),
    message:
        "Augmenting training images for {wildcards.model} and models with its recipe"
    script:
        "../scripts/augment_images.py"


use rule augment_images as augment_alike with:
    """Augment images by the recipe of the study, alike for all models: their losses compare."""
    output:
        images="<results>/{study}/augmented/alike/{model}.safetensors",
    log:
        "<logs>/{study}/augmented/alike/{model}.log",
    benchmark:
        "<benchmarks>/{study}/augmented/alike/{model}.tsv"
    resources:
        **requests_of("augment_images", alike="yes"),
    params:
        **values_and_code_of("augment_images", alike="yes"),
    message:
        "Augmenting training images for {wildcards.model} and models like it"


rule train_mini:
    """Train every bundled model again, and replace its weights and histories."""
    input:
        trained=bundled_outputs,
    output:
        done="<results>/mini/training/bundled",
    log:
        "<logs>/mini/training/bundled.log",
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        **values_and_code_of("bundle_weights"),
        folder=str(ROOT / "resources" / "checkpoints" / "mini"),
    message:
        "Writing resources/checkpoints/mini"
    script:
        "../scripts/bundle_weights.py"
