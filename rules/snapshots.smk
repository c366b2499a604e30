"""Snapshots: weights from the training of a model, fetched and converted like its checkpoint."""


use rule fetch_checkpoint as fetch_snapshot with:
    output:
        checkpoint="<results>/{study}/downloads/{model}/{snapshot}.checkpoint",
    log:
        "<logs>/{study}/downloads/{model}/{snapshot}.log",
    cache: "omit-software"
    localrule: True
    params:
        checkpoint=snapshot_of,
    message:
        "Downloading the snapshot {wildcards.snapshot} of {wildcards.model}"


use rule convert_checkpoint as convert_snapshot with:
    input:
        source=snapshot_file,
    output:
        checkpoint="<results>/{study}/snapshots/{model}/{snapshot}.safetensors",
    log:
        "<logs>/{study}/snapshots/{model}/{snapshot}.log",
    benchmark:
        "<benchmarks>/{study}/snapshots/{model}/{snapshot}.tsv"
    localrule: True
    params:
        checkpoint=snapshot_of,
        label="{model}, snapshot {snapshot}",
    message:
        "Converting the snapshot {wildcards.snapshot} of {wildcards.model}"
