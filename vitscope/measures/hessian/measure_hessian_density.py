"""The density of all eigenvalues of the Hessian, batch by batch.

The table `hessian_density`: one row per model, snapshot, batch, probe and node.

Stochastic Lanczos quadrature of the same Hessian: from each random vector, `density_steps` steps of
Lanczos give as many nodes and weights (fewer if the spectrum has fewer eigenvalues). The mean over
probes of the sum of `weight` times `node` estimates the trace of the Hessian over the number of
parameters; with the square of `node`, its squared Frobenius norm over that number.
"""

from vitscope.files.tables import Table
from vitscope.measures.hessian.measure import (
    OF_BATCH,
    SHARES,
    Settings,
    choose_batches,
    refuse_batches,
    work_of_products,
)
from vitscope.measures.measure import Case, FigureKind, Given, Measure, Work

TABLE = Table(
    "hessian_density",
    {
        **OF_BATCH,
        "probe": ("int32", "random vector that Lanczos started from"),
        "node": ("float64", "node of the quadrature, an eigenvalue"),
        "weight": ("float64", "its weight; those of a probe add up to 1"),
    },
)


def choose_probes(case: Case) -> Given:
    """Depend on the batches, and how the density is estimated."""
    settings: Settings = case.settings
    probing = {"probes": settings.density_probes, "steps": settings.density_steps}
    return choose_batches(case) | probing


def count_passes(case: Case) -> Work:
    """Count the products of all steps from all random vectors."""
    settings: Settings = case.settings
    products = settings.density_probes * settings.density_steps
    return work_of_products(case, products, settings.density_steps, most=False)


# It shares the settings of the largest eigenvalues.
HESSIAN_DENSITY = Measure(
    needs="loss",
    table=TABLE,
    question="How networks train",
    figures={"hessian_density": FigureKind(snapshots=True)},
    settings_of=("hessian", Settings),
    arguments=choose_probes,
    takes=count_passes,
    shares=SHARES,
    refuse=refuse_batches,
)
