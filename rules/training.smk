"""Training: the models of a study from nothing, and the bundled ones of mini."""


rule train_model:
    input:
        train=split_for("train"),
        test=split_for("test"),
    output:
        init="<results>/{study}/training/{model}/init.safetensors",
        warmup="<results>/{study}/training/{model}/warmup.safetensors",
        end="<results>/{study}/training/{model}/end.safetensors",
        history="<results>/{study}/training/{model}/history.parquet",
    log:
        "<logs>/{study}/training/{model}.log",
    benchmark:
        "<benchmarks>/{study}/training/{model}.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=memory_of_training,
        runtime=minutes_of_training,
        gpu=gpu_of,
    params:
        code=family_code("train_model"),
        model=network_of,
        recipe=recipe_of,
        device=lambda wildcards: study_of(wildcards).settings["device"],
    message:
        "Training {wildcards.model}"
    script:
        "../scripts/train_model.py"


rule train_mini:
    """Train every bundled model again and put weights and histories in their place."""
    input:
        collect(rules.train_model.output, study="mini", model=bundled_models("mini")),
    output:
        touch("<results>/mini/training/bundled"),
    log:
        "<logs>/mini/training/bundled.log",
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        code=code("bundle_weights"),
        folder=str(ROOT / "resources" / "checkpoints" / "mini"),
    message:
        "Writing resources/checkpoints/mini"
    script:
        "../scripts/bundle_weights.py"
