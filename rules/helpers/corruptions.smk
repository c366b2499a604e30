"""What the jobs of corruptions.smk are given, and where their inputs lie."""


def measured_split(wildcards):
    """The artefact of the split of a data set that a study measures."""
    study = study_of(wildcards)
    return rules.build_split.output.images.format(
        study=study.name, dataset=wildcards.dataset, split=study.analysis.split
    )


def official_corrupted(wildcards):
    """The official corrupted images of a data set, if the study has them."""
    study = study_of(wildcards)
    path = study.data[wildcards.dataset].corrupted
    where = f"{study.path}: data.{wildcards.dataset}.corrupted"
    return [] if path is None else [clear(existing, where, Path(path).expanduser())]
