"""Train a model of a study, or a step of a build-up; go on where that was broken off."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from vitscope.buildup import proposal
from vitscope.jobs.job import Files, Job, Names, Request, Resources, Study, Takes, Values
from vitscope.measures.measure import Work, passes
from vitscope.networks.building.family import module_of

if TYPE_CHECKING:
    from vitscope.settings.keys import Recipe

# Forward and backward.
PASSES = 3
# Megabytes of the process that augments, which counts what it shares with the one that trains.
AUGMENTING_MB = 520


def _values(study: Study, names: Names) -> Values:
    recipe = {"recipe": asdict(_recipe(study, names)), "device": study.device}
    if "buildup" in names:
        # Its network is known when it was decided.
        where = f"buildups.{names['buildup']}"
        return recipe | {"where": where, "modules": [module_of(proposal.FAMILY)]}
    study.check_trainable(names["model"])
    network = study.network(names["model"])
    return recipe | {"network": network, "modules": [module_of(network["family"])]}


def _recipe(study: Study, names: Names) -> "Recipe":
    if "buildup" in names:
        return study.recipe_of_steps(names["buildup"])
    return study.recipe(names["model"])


def _model(study: Study, names: Names) -> str:
    return study.buildups[names["buildup"]].baseline if "buildup" in names else names["model"]


def _work(request: Request) -> Work | None:
    recipe = _recipe(request.study, request.names)
    views = recipe.epochs * PASSES
    return passes(views, recipe.images, request.images, recipe.batch_size, "gradient")


JOB = Job(
    values=_values,
    takes=Takes(torch=True, work=_work, split="train", builds=True, beside=AUGMENTING_MB),
    batches="training.batch_size",
    model=_model,
)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Train the network; a folder without snapshots is an output, too."""
    from vitscope.buildup.proposal import network_to_try
    from vitscope.jobs.opening import open_device
    from vitscope.training.from_nothing import train_network

    network = values.get("network") or network_to_try(inputs["tried"], values["where"])
    Path(outputs["epochs"]).mkdir(exist_ok=True)
    train_network(
        network,
        values["recipe"],
        inputs["train"],
        inputs["test"],
        Path(outputs["end"]).parent,
        open_device(values["device"]),
    )
