"""What the jobs of latents.smk are given, and where their inputs lie."""

LATENTS_MB = config.get("max_latents_gb") and max(1, int(1000 * config["max_latents_gb"]))


if LATENTS_MB:
    workflow.register_resource("latents_mb", LATENTS_MB)


def keeping_latents():
    """The studies that keep their latents."""
    return {name for name, study in STUDIES.items() if study.analysis.keep_latents}


def room_to_measure(wildcards, input):
    """The megabytes of latents that a measurement keeps from being deleted."""
    return min(LATENTS_MB, costs.file_megabytes(input.latents)) if LATENTS_MB else 0


def room_to_extract(wildcards, input):
    """The megabytes of latents that are to be extracted.

    Latents exist for longer than their extraction runs. But measurements have priority, so that an
    extraction starts only when no measurement could: as long as it takes no less room than each of
    those, all latents that exist are in the hands of a job that runs. Those that a study keeps have
    no bound.
    """
    study = study_of(wildcards)
    bounded = LATENTS_MB and study.name not in keeping_latents()
    if not (bounded and Path(input.blocks).exists()):
        return 0
    # The header of the file fits into one more.
    own = costs.latents_megabytes(job_of("extract_latents", wildcards, input)) + 1
    if own > LATENTS_MB:
        sys.exit(
            f"vitscope: {study.path}: a shard of latents of {wildcards.model} takes "
            f"{own / 1000:g} GB and max_latents_gb is {config['max_latents_gb']:g}: lower "
            f"analysis.shard_size, or raise max_latents_gb."
        )
    results = Path(input.blocks).parents[2]
    existing = [
        costs.file_megabytes(path)
        for name in STUDIES.keys() - keeping_latents()
        for path in results.glob(f"{name}/latents/*/*.safetensors")
    ]
    return min(LATENTS_MB, max([own, *existing]))
