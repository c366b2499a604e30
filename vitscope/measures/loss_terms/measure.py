"""The effects of two common mistakes: a loss without its L2 term, or on clean images.

The table `loss_terms`: one row per model, batch, condition and point.

A network was trained on augmented images, with a loss that has a weight decay term. The loss is
measured with this term and without it (`l2`), and on augmented and on clean images (`clean`). Only
one of these four conditions is the one in which the network was trained.

**The slice** is the loss at the trained weights and at steps along one random direction, normalized
by filter like the directions of `landscape`. The term is `weight_decay` / 2 times the sum of
squares of the parameters that decay in training; along a direction it is a parabola.

**The spectrum** is the spectrum of the Hessian at the trained weights, by stochastic Lanczos
quadrature as in `hessian_density`, from one random vector for each batch. The term adds
`weight_decay` to the diagonal for the parameters that decay; if all parameters decay, it adds
`weight_decay` to each eigenvalue.
"""

from dataclasses import asdict, dataclass
from functools import partial

from vitscope.errors import VitscopeError
from vitscope.files.tables import Table
from vitscope.measures.loss_batches import (
    PASSES_OF_A_PRODUCT,
    fit_batches,
    refuse_batches_of_one_size,
)
from vitscope.measures.measure import Case, FigureKind, Given, Measure
from vitscope.measures.work import Work
from vitscope.settings.section import setting

TABLE = Table(
    "loss_terms",
    {
        "model": ("string", "model, as the study names it"),
        "batch": ("int32", "batch of training images, from 0"),
        "clean": ("bool", "whether the images are not augmented"),
        "l2": ("bool", "whether the loss has the weight decay term"),
        "of": ("string", "slice, along a direction; or spectrum, of the Hessian"),
        "x": ("float64", "steps along the direction; or a node of the quadrature, an eigenvalue"),
        "value": ("float64", "loss there; or the weight of the node"),
        "weight_decay": ("float64", "weight of the term, where the loss has it"),
    },
)


@dataclass(frozen=True)
class LossTermsSettings:
    """The loss with and without L2, on augmented and on clean images."""

    batches: int = setting(2, "How many batches of images.", minimum=1)
    batch_size: int = setting(64, "Images per batch.", minimum=1)
    batches_per_job: int = setting(
        1, "How many batches one job measures; results do not depend on it.", minimum=1
    )
    points: int = setting(21, "Points of the slice.", minimum=3)
    radius: float = setting(0.5, "How far the slice reaches, both ways.", exclusiveMinimum=0)
    seed: int = setting(0, "Seed of the direction.", minimum=0)
    steps: int = setting(40, "Steps of Lanczos for each spectrum.", minimum=5)


def choose_batches_of_loss_terms(case: Case) -> Given:
    """Return the batches, the settings, the weight decay, and what training images depend on."""
    study, settings = case.study, asdict(case.settings)
    del settings["batches_per_job"]
    trained_on = {"images": None, "seed": 0}
    if study.training:
        recipe = study.recipe(case.model)
        trained_on = {"images": recipe.images, "seed": recipe.seed}
    network = study.network(case.model)
    drawing = {"seed": study.analysis.augmented.seed, "recipe": trained_on}
    return {
        **settings,
        "batches": list(case.steps),
        "weight_decay": study.weight_decay(case.model),
        "drawing": drawing | {key: network[key] for key in ("mean", "std")},
    }


def count_passes_of_loss_terms(case: Case) -> Work:
    """Count the passes of two slices and the products of four spectra."""
    settings: LossTermsSettings = case.settings
    each = 2 * settings.points + 4 * settings.steps * PASSES_OF_A_PRODUCT
    count = len(case.steps) * settings.batch_size * each
    return Work(count, settings.batch_size, "product", settings.steps)


def refuse_missing_loss_terms(case: Case) -> None:
    """Refuse a loss without augmentation or without weight decay, which the figure leaves out."""
    refuse_batches_of_one_size(case)
    if case.study.clean or not case.study.weight_decay(case.model):
        raise VitscopeError(
            f"{case.study.path}: models.{case.model}: figures of the kind 'loss_terms' leave out "
            f"augmentation and weight decay, and the loss of this model lacks one of them."
        )


LOSS_TERMS = Measure(
    needs="loss",
    measure="compute:measure_loss_terms",
    table=TABLE,
    reads=("drawn_from",),
    question="How networks train",
    figures={"loss_terms": FigureKind("show:plot_loss_terms")},
    settings=LossTermsSettings,
    arguments=choose_batches_of_loss_terms,
    takes=count_passes_of_loss_terms,
    shares=("batches", "batches_per_job"),
    refuse=refuse_missing_loss_terms,
    fit=partial(fit_batches, usual=LossTermsSettings()),
)
