"""Train a model of a study, or a step of a build-up; go on where that was broken off."""

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vitscope.buildup import rule
from vitscope.jobs.job import Files, Job, Names, Request, Resources, Study, Takes, Values
from vitscope.jobs.measuring import with_network
from vitscope.measures.measure import Work, passes
from vitscope.networks.building.family import module_of

if TYPE_CHECKING:
    from vitscope.settings.keys import Recipe

# Forward and backward, once or for sharpness-aware minimization twice.
PASSES, PASSES_UPHILL = 3, 6
# Megabytes of the process that augments, which counts what it shares with the one that trains.
AUGMENTING_MB = 520
# A folder of what torch.compile has made.
COMPILED = ".compiled"


def _values(study: Study, names: Names) -> Values:
    recipe = {"recipe": asdict(_recipe(study, names)), "device": study.device}
    if "buildup" in names:
        # Its network is known when it was decided.
        where = f"buildups.{names['buildup']}"
        return recipe | {"where": where, "modules": [module_of(rule.FAMILY)]}
    study.check_trainable(names["model"])
    return recipe | with_network(study, names["model"])


def _recipe(study: Study, names: Names) -> "Recipe":
    if "buildup" in names:
        return study.recipe_of_steps(names["buildup"])
    return study.recipe(names["model"])


def _work(request: Request) -> Work | None:
    recipe = _recipe(request.study, request.names)
    uphill = recipe.sam is not None
    views = recipe.epochs * (PASSES_UPHILL if uphill else PASSES)
    work = passes(views, recipe.images, request.images, recipe.batch_size, "gradient")
    # The weights from which it goes uphill are kept.
    return work and replace(work, vectors=int(uphill))


JOB = Job(
    values=_values,
    takes=Takes(torch=True, work=_work, split="train", builds=True, beside=AUGMENTING_MB),
    batches="training.batch_size",
)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Train the network; a folder without snapshots is an output, too."""
    # Asked before torch is imported, which sets it to what it takes by default.
    own_cache = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    from vitscope.buildup.rule import network_to_try
    from vitscope.jobs.opening import open_device, open_images
    from vitscope.networks.building.family import build_network
    from vitscope.training.batches import seeded
    from vitscope.training.loop import train

    network = values.get("network") or network_to_try(inputs["tried"], values["where"])
    recipe, mean, std = values["recipe"], network["mean"], network["std"]
    Path(outputs["epochs"]).mkdir(exist_ok=True)
    place = Path(outputs["end"]).parent
    with seeded(recipe["seed"]):
        model = build_network(network)
    train(
        model.to(open_device(values["device"])),
        open_images(inputs["train"]),
        open_images(inputs["test"]),
        recipe,
        recipe["seed"],
        place,
        mean=mean,
        std=std,
        made_of={"network": json.dumps(network, sort_keys=True)},
        say=resources.say_of_it,
        # A run that is killed now would lose the rest.
        keep_unfinished=True,
        # Beside all trainings of the study, which can use it.
        compiler_cache=None if own_cache else place.parent / COMPILED,
    )
