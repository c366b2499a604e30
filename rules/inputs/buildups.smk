"""What rules/buildups.smk asks for: inputs, outputs and params by wildcards."""

from itertools import count

from vitscope.buildup.rule import read_buildup_proposal
from vitscope.jobs import buildups


def results_of_earlier_steps(wildcards):
    steps = range(int(wildcards.step))
    return [path_of(rules.measure_step.output.result, wildcards, step=n) for n in steps]


def weights_of_steps(wildcards):
    """Return the files of bundled weights; the job that reads them reports missing ones."""
    bundled = buildups.bundled_buildup_steps(study_of(wildcards), wildcards.buildup)
    return [from_here(file) for file in bundled]


def trained_steps(study, buildup):
    """Return the indices of all steps; Snakemake calls this again after each decision."""
    for step in count():
        names = {"study": study, "buildup": buildup, "step": step}
        decided = checkpoints.decide_step.get(**names).output.tried
        # Let Snakemake open it: if the file is in a storage, Snakemake fetches it first.
        with decided.open():
            if exit_on_user_error(read_buildup_proposal, decided).network is None:
                return range(step)


def results_of_steps(wildcards):
    study = study_of(wildcards)
    if not buildups.is_trained(study, wildcards.buildup):
        return [path_of(rules.measure_bundled.output.result, wildcards)]
    names = {"study": study.name, "buildup": wildcards.buildup}
    return paths_of(rules.measure_step.output.result, **names, step=trained_steps(**names))


def weights_for_studies(wildcards, input):
    study = study_of(wildcards)
    if not buildups.is_trained(study, wildcards.buildup):
        bundled = buildups.bundled_buildup_steps(study, wildcards.buildup)
        return [{"bundled": file.relative_to(package_data.ROOT).as_posix()} for file in bundled]
    steps = range(len(input.results))
    return [{"path": path_of(rules.train_step.output.end, wildcards, step=n)} for n in steps]


def weights_of_trained_steps(wildcards):
    """Return the weights of all steps of the bundled build-up, trained here."""
    names = {"study": "mini", "buildup": "fig12a"}
    return paths_of(rules.train_step.output.end, **names, step=trained_steps(**names))
