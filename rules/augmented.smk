"""Augmented images: drawn once by the training recipe of a model, for all that measures its loss."""


rule augment_images:
    input:
        images=training_split,
    output:
        images="<results>/{study}/augmented/{model}.safetensors",
    log:
        "<logs>/{study}/augmented/{model}.log",
    benchmark:
        "<benchmarks>/{study}/augmented/{model}.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=memory_of_drawing,
        runtime=minutes_of_augmenting("augmented"),
    params:
        code=code("augment_images"),
        model=network_of,
        recipe=augmentation_of,
        drawing=drawing_of,
    message:
        "Augmenting training images for {wildcards.model}"
    script:
        "../scripts/augment_images.py"
