"""What rules/corruptions.smk asks for: inputs, outputs and params by wildcards."""


def official_corrupted(wildcards):
    study, name = study_of(wildcards), wildcards.dataset
    return given_file(study, f"data.{name}.corrupted", study.data[name].corrupted)
