"""What the jobs of provenance.smk are given, and where their inputs lie."""


def tables_of_buildups(wildcards):
    """The tables of the build-ups of a study."""
    study = study_of(wildcards)
    path = rules.tabulate_buildup.output.table
    return collect(path, study=study.name, buildup=study.buildups)


def shown_splits(wildcards):
    """The artefacts that the figures of a study are made from."""
    study = study_of(wildcards)
    return [
        rules.build_split.output.images.format(study=study.name, dataset=dataset, split=split)
        for dataset, split in params.shown_data(study)
    ]
