"""Robustness: accuracy and calibration on corrupted images.

Corrupted images are many times what they are made from and soon made again, so they live only as
long as a model has yet to be measured on them.
"""


rule corrupt_images:
    input:
        images=measured_split,
        official=official_corrupted,
        # What the severities mean; the library reads it.
        parameters=str(ROOT / "resources" / "corruptions.yaml"),
    output:
        images=temp("<results>/{study}/corrupted/{dataset}/{corruption}.safetensors"),
    log:
        "<logs>/{study}/corrupted/{dataset}/{corruption}.log",
    benchmark:
        "<benchmarks>/{study}/corrupted/{dataset}/{corruption}.tsv"
    wildcard_constraints:
        corruption=r"\w+",
    conda:
        "../envs/base.yaml"
    resources:
        mem_mb=memory_of_arrays,
        runtime=minutes_of_corrupting,
    params:
        code=code("corrupt_images"),
        seed=lambda wildcards: study_of(wildcards).settings["analysis"]["seed"],
        robustness=robustness_of("images", "severities"),
    message:
        "Corrupting the images of {wildcards.dataset}: {wildcards.corruption}"
    script:
        "../scripts/corrupt_images.py"


rule measure_robustness:
    input:
        checkpoint=rules.convert_checkpoint.output.checkpoint,
        images=split_for(None),
        corrupted=corrupted_of,
    output:
        robustness="<results>/{study}/robustness/{model}/{part}.parquet",
    log:
        "<logs>/{study}/robustness/{model}/{part}.log",
    benchmark:
        "<benchmarks>/{study}/robustness/{model}/{part}.tsv"
    wildcard_constraints:
        part=r"\d+",
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=memory_of_passes,
        runtime=minutes_of(passes_of_robustness),
        gpu=gpu_of,
    params:
        code=family_code("measure_robustness"),
        model=network_of,
        analysis=analysis_of("batch_size"),
        device=lambda wildcards: study_of(wildcards).settings["device"],
    message:
        "Classifying corrupted images with {wildcards.model}, part {wildcards.part}"
    script:
        "../scripts/measure_robustness.py"


rule merge_robustness:
    input:
        parts=parts_of_robustness,
    output:
        robustness="<results>/{study}/robustness/{model}.parquet",
        error="<results>/{study}/corruption_error/{model}.parquet",
    log:
        "<logs>/{study}/robustness/{model}.log",
    benchmark:
        "<benchmarks>/{study}/robustness/{model}.tsv"
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        code=code("merge_robustness"),
    message:
        "Merging the robustness of {wildcards.model}"
    script:
        "../scripts/merge_robustness.py"
