"""Pairs of models that are alike but for one thing, which a claim is about.

They are told apart by what the study says of their networks and of their trainings, not by names.
"""

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

from vitscope.claims.claim import Models, Subject, attending

# Settings that make no difference between models which are compared.
_INDIFFERENT = ("training.seed", "training.trajectory", "training.snapshot")


def alike_but_for(
    *keys: str, when: Callable[[Any, Any], bool]
) -> Callable[[Models], list[Subject]]:
    """Return how to pair models with MSAs and models that differ in no other settings than these.

    `when` takes the first of these settings of both, None where a model does not have it, and tells
    whether the two are a pair in this order.
    """

    def choose(models: Models) -> list[Subject]:
        rest = {model: _without(traits.settings, keys) for model, traits in models.items()}
        first = {model: traits.settings.get(keys[0]) for model, traits in models.items()}
        return [
            (ours, theirs)
            for (ours,), theirs in product(attending(models), models)
            if when(first[ours], first[theirs]) and rest[ours] == rest[theirs]
        ]

    return choose


def named_in(key: str) -> Callable[[Models], list[Subject]]:
    """Return how to pair models with those that a study names for them, by a key of the model."""

    def choose(models: Models) -> list[Subject]:
        named = {name: each.settings.get(key) or () for name, each in models.items()}
        return [(ours, theirs) for ours in models for theirs in named[ours] if theirs in models]

    return choose


def pretrained_by(what: str) -> Callable[[Models], list[Subject]]:
    """Return how to pair models that were pretrained by something with those that were not.

    Which these are the study says in so many words: it knows no more of weights of others.
    """
    return named_in(f"pretraining.{what}")


# Of claims that compare a model that averages with the one of which it does.
AVERAGED = (
    'Not in the paper: its authors find in "Blurs Behave Like Ensembles" (2022) that blurs and '
    "ensembles {}. `averages` of a model names the one of which it averages, which the second "
    "model is."
)


# Models that average, with those of which they average.
averaging = named_in("averages")


def _without(settings: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {
        key: value
        for key, value in settings.items()
        if key not in keys and not key.startswith(_INDIFFERENT)
    }


# One classifies the class token, the other the mean of all tokens.
token_against_mean = alike_but_for(
    "arch.class_token",
    "arch.global_pool",
    when=lambda ours, theirs: ours is not False and theirs is False,
)
local_against_global = alike_but_for(
    "arch.attention_window", when=lambda ours, theirs: ours is not None and theirs is None
)
global_against_local = alike_but_for(
    "arch.attention_window", when=lambda ours, theirs: ours is None and theirs is not None
)
small_against_large_patches = alike_but_for(
    "arch.patch_size",
    when=lambda ours, theirs: ours is not None and theirs is not None and ours < theirs,
)
# Epochs that go with the size of the data: as many steps take more of them.
less_against_more_data = alike_but_for(
    "training.images",
    "training.epochs",
    "training.warmup_epochs",
    when=lambda ours, theirs: ours is not None and (theirs is None or ours < theirs),
)
alternet_against_its_cnn = alike_but_for(
    "arch.attention",
    "arch.heads",
    "arch.head_dim",
    "arch.window",
    when=lambda ours, theirs: any(ours or ()) and theirs is not None and not any(theirs),
)
