"""Curvature by part: trace and largest eigenvalue of blocks and kinds of layers, batch by batch.

The table `curvature`: one row per model, snapshot, batch and part of the network.

A part is the whole network, a block or a kind of layer. Its Hessian is the diagonal block of the
same Hessian as that of the table `hessian`: that of the loss in the parameters of the part alone,
but that the weight decay term is left out unless `analysis.curvature.l2` is true: it adds
`weight_decay` to each eigenvalue, which is most of the trace, and tells nothing of the part. Each
parameter is in one block and in one kind of layer. A *block* is what lies between a cut point and
the one before; `head` is behind the last, and a parameter is where the module that owns it begins.
*Kinds of layers* are found by what a network computes: `qkv` are the layers nearest before the
products of an attention, `projection` those nearest behind; `norm` are all norms; `stem` and `head`
what else is before the first and behind the last cut point, class token and position embedding
among it; `mlp` and `convolution` all other products and convolutions; `other` is what no layer
multiplies by, such as scales of branches and position biases. Biases belong to their layer.

**The Gauss-Newton part.** The Hessian is H = G + R. G is the Hessian of the loss if logits were
linear in the parameters, with the weight decay term if there is one: it has no negative
eigenvalues. R is what the curvature of the network itself adds, and all that is negative comes from
it.

**How.** Traces are Hutchinson's estimates from `probes` vectors v of random signs, the same for all
parts, for H and for G: that of a part is the sum of v · Hv over its entries, so that one product
serves all parts, and estimates of blocks, and of kinds of layers, add up to that of the network,
but for rounding. The eigenvalue is the one of largest magnitude, by the Lanczos of the table
`hessian` in the parameters of the part, whose products go back through no more of the network than
it needs.
"""

from dataclasses import dataclass, replace
from functools import partial

from vitscope.files.tables import Table
from vitscope.measures.hessian.measure import (
    LEAST_VECTORS,
    OF_BATCH,
    SHARES,
    choose_batches,
    fit_batches,
    refuse_batches,
    work_of_products,
)
from vitscope.measures.measure import Case, FigureKind, Measure, Work, only, together
from vitscope.settings.section import setting

TABLE = Table(
    "curvature",
    {
        **OF_BATCH,
        "of": ("string", "network, block or layer: what the part is"),
        "index": ("int32", "position of the cut point behind a block; of layers, an order"),
        "part": ("string", "network, name of the cut point behind a block or head, kind of layer"),
        "parameters": ("int64", "trained parameters of the part"),
        "trace": ("float64", "estimated trace of the Hessian in these"),
        "gauss_newton_trace": ("float64", "the same of its Gauss-Newton part"),
        "eigenvalue": ("float64", "eigenvalue of largest magnitude of the Hessian in these"),
        "residual": ("float64", "|Hv - av| for the unit vector v, over the magnitude of a"),
        "converged": ("bool", "whether the residual is within the tolerance"),
    },
)

# What the eigenvalue of a part takes, in products with all parameters: 1.5 to 4.2 were measured
# with a tolerance of 0.05; at 0.01, Lanczos takes a third more steps.
PRODUCTS_OF_PART = 6
# Kinds of layers, the network itself, and the head.
PARTS_BESIDE_BLOCKS = 8


@dataclass(frozen=True)
class Settings:
    """The curvature of the training loss in parts of the network."""

    batches: int = setting(8, "How many batches of augmented images.", minimum=1)
    batch_size: int = setting(64, "Images per batch.", minimum=1)
    batches_per_job: int = setting(4, "Batches that are measured by one job.", minimum=1)
    probes: int = setting(4, "Random vectors per batch for the traces.", minimum=1)
    tolerance: float = setting(
        0.01,
        "Residual of an eigenvalue, over its magnitude, at which it counts as converged.",
        exclusiveMinimum=0,
    )
    iterations: int = setting(100, "Most steps of Lanczos for each part.", minimum=10)
    l2: bool = setting(
        False,
        "Add the weight decay term to the loss; it is most of the trace, the same for all parts.",
    )


def count_passes(case: Case) -> Work:
    """Count two products for each random vector, and those of the eigenvalues of all parts."""
    parts = case.cut_points + PARTS_BESIDE_BLOCKS
    products = 2 * case.settings.probes + parts * PRODUCTS_OF_PART
    work = work_of_products(case, products, LEAST_VECTORS, most=True)
    # The graph of the Gauss-Newton part is in memory beside that of the Hessian.
    return replace(work, batch=2 * work.batch)


CURVATURE = Measure(
    needs="loss",
    table=TABLE,
    reads=("blocks",),
    question="How networks train",
    figures={
        "curvature": FigureKind(beside=("blocks",), snapshots=True),
        "curvature_by_layer": FigureKind(snapshots=True),
    },
    settings=Settings,
    arguments=together(choose_batches, only("probes", "tolerance", "iterations")),
    takes=count_passes,
    shares=SHARES,
    refuse=refuse_batches,
    fit=partial(fit_batches, usual=Settings()),
)
