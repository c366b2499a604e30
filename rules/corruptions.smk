"""Corrupted images: many times what they are made from, and soon made again.

So they live only as long as a model has yet to be measured on them.
"""


include: "helpers/corruptions.smk"


rule corrupt_images:
    input:
        images=measured_split,
        official=official_corrupted,
        # What the severities mean; the library reads it.
        parameters=from_here(package_data.CORRUPTION_PARAMETERS),
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
        mem_mb=megabytes_of("corrupt_images"),
        runtime=minutes_of("corrupt_images"),
    params:
        code=code_of("corrupt_images"),
        seed=lambda wildcards: study_of(wildcards).analysis.seed,
        robustness=of_study(params.corrupted),
    message:
        "Corrupting the images of {wildcards.dataset}: {wildcards.corruption}"
    script:
        "../scripts/corrupt_images.py"
