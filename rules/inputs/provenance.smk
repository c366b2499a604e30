"""What rules/provenance.smk asks for: inputs, outputs and params by wildcards."""

from vitscope.jobs.provenance import splits_to_report


def splits_of_study(wildcards):
    shown = splits_to_report(study_of(wildcards))
    images = rules.build_split.output.images
    return [path_of(images, wildcards, dataset=dataset, split=name) for dataset, name in shown]
