"""Classification: predictions for every image, and what they say of a model."""


rule predict:
    input:
        checkpoint=rules.convert_checkpoint.output.checkpoint,
        images=lambda wildcards: split_for(wildcards.split)(wildcards),
    output:
        predictions="<results>/{study}/predictions/{model}/{split}.parquet",
    log:
        "<logs>/{study}/predictions/{model}/{split}.log",
    benchmark:
        "<benchmarks>/{study}/predictions/{model}/{split}.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=memory_of_passes,
        runtime=minutes_of(passes_of_prediction),
        gpu=gpu_of,
    params:
        code=family_code("predict"),
        model=network_of,
        selection=classified,
        analysis=analysis_of("batch_size"),
        device=lambda wildcards: study_of(wildcards).settings["device"],
    message:
        "Classifying the images of the split {wildcards.split} by {wildcards.model}"
    script:
        "../scripts/predict.py"


rule score_classification:
    input:
        predictions=predictions_for("classification"),
    output:
        classification="<results>/{study}/classification/{model}.parquet",
        reliability="<results>/{study}/reliability/{model}.parquet",
    log:
        "<logs>/{study}/classification/{model}.log",
    benchmark:
        "<benchmarks>/{study}/classification/{model}.tsv"
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        code=code("score_classification"),
        classes=lambda wildcards: network_of(wildcards)["classes"],
    message:
        "Scoring the predictions of {wildcards.model}"
    script:
        "../scripts/score_classification.py"


rule score_shape_texture:
    input:
        predictions=predictions_for("shape_texture"),
        images=split_of_table("shape_texture"),
    output:
        shape_texture="<results>/{study}/shape_texture/{model}.parquet",
    log:
        "<logs>/{study}/shape_texture/{model}.log",
    benchmark:
        "<benchmarks>/{study}/shape_texture/{model}.tsv"
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        code=code("score_shape_texture"),
        bootstrap=lambda wildcards: study_of(wildcards).settings["analysis"]["bootstrap"],
    message:
        "Measuring whether {wildcards.model} goes by shape or by texture"
    script:
        "../scripts/score_shape_texture.py"
