"""What the jobs of buildups.smk are given, and where their inputs lie."""

from itertools import count

from vitscope.buildup.tried import read_tried


def baseline_of(wildcards):
    """The model that a build-up begins with."""
    study = study_of(wildcards)
    return study.models[study.buildups[wildcards.buildup].baseline]


def split_of_baseline(split):
    """The artefact of a split of the data set that a build-up is about."""

    def path(wildcards):
        names = {"study": study_of(wildcards).name, "dataset": baseline_of(wildcards).data}
        return rules.build_split.output.images.format(**names, split=split)

    return path


def results_before(wildcards):
    """The results of all steps before one, by which it is decided."""
    steps = range(int(wildcards.step))
    return [rules.measure_step.output.result.format(**{**wildcards, "step": n}) for n in steps]


def steps_of(study, buildup, weights):
    """The numbers of all steps.

    Each is known when the one before it was measured: Snakemake asks again after every decision.
    """
    for step in count():
        names = {"study": study, "buildup": buildup, "weights": weights, "step": step}
        if clear(read_tried, checkpoints.decide_step.get(**names).output.tried).network is None:
            return range(step)


def results_of_steps(wildcards):
    """The results of all steps of a build-up."""
    study = study_of(wildcards)
    names = {"study": study.name, "buildup": wildcards.buildup}
    names["weights"] = params.weights_of_steps(study, wildcards.buildup)
    return collect(rules.measure_step.output.result, **names, step=steps_of(**names))


def trained_steps(study, buildup):
    """The weights of all steps of a build-up, trained here even where others are bundled."""

    def paths(wildcards):
        names = {"study": study, "buildup": buildup}
        steps = steps_of(**names, weights="trained")
        return collect(rules.train_step.output.end, **names, step=steps)

    return paths


def weights_of_step(wildcards):
    """The weights of a step; none where they should be bundled and are not, which its job tells."""
    if wildcards.weights == "trained":
        return rules.train_step.output.end.format(**wildcards)
    file = bundled_file(wildcards)
    return str(file) if file.is_file() else []


def missing_weights(wildcards):
    """What to say if the weights of a step are not those that it tries."""
    study = study_of(wildcards)
    return f"{study.path}: buildups.{wildcards.buildup}.weights"


def bundled_file(wildcards):
    """Where the bundled weights of a step are."""
    names = study_of(wildcards), wildcards.buildup, wildcards.step
    return ROOT / (params.bundled_step(*names) or "")


def weights_for_studies(wildcards, input):
    """Where a study finds the weights of each step."""
    study = study_of(wildcards)
    names = {"study": study.name, "buildup": wildcards.buildup}
    bundled = [params.bundled_step(study, wildcards.buildup, n) for n in range(len(input))]
    trained = [rules.train_step.output.end.format(**names, step=n) for n in range(len(input))]
    return [{"bundled": b} if b else {"path": t} for b, t in zip(bundled, trained)]


def published_of_buildup(wildcards):
    """The published points that the figure of a build-up shows, if any."""
    published = study_of(wildcards).buildups[wildcards.buildup].published
    return [from_here(package_data.PUBLISHED_POINTS / published)] if published else []
