"""What the jobs of checkpoints.smk are given, and where their inputs lie."""


def checkpoint_file(wildcards):
    """The file that a checkpoint is converted from; none where the network brings its weights."""
    download = rules.fetch_checkpoint.output.checkpoint.format(**wildcards)
    entry = study_of(wildcards).models[wildcards.model].checkpoint
    if "made" in entry:
        return []
    return named_file(wildcards, "checkpoint", entry, download)


def snapshot_file(wildcards):
    """The file that a snapshot is converted from."""
    download = rules.fetch_snapshot.output.checkpoint.format(**wildcards)
    entry = of_study(Study.snapshot, "model", "snapshot")(wildcards)
    return named_file(wildcards, f"snapshots.{wildcards.snapshot}", entry, download)
