"""Corrupted images exist only until all models have been measured on them.

They are many times as large as the originals, and quickly made again.
"""


rule corrupt_images:
    """Write corrupted versions of a part of the images, or take those that a study names."""
    input:
        images=lambda wildcards: path_of(
            rules.build_split.output.images,
            wildcards,
            split=study_of(wildcards).analysis.split,
        ),
        official=official_corrupted,
        # This file defines the severities; the library reads it itself.
        parameters=from_here(package_data.CORRUPTION_PARAMETERS),
    output:
        images=temp(directory("<results>/{study}/corrupted/{dataset}/{part}")),
    log:
        "<logs>/{study}/corrupted/{dataset}/{part}.log",
    benchmark:
        "<benchmarks>/{study}/corrupted/{dataset}/{part}.tsv"
    conda:
        "../envs/base.yaml"
    resources:
        **requests_of("corrupt_images"),
    params:
        **values_and_code_of("corrupt_images"),
    message:
        "Corrupting the images of {wildcards.dataset}, part {wildcards.part}"
    script:
        "../scripts/corrupt_images.py"
