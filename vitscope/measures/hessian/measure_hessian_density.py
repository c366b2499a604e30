"""The density of all eigenvalues of the Hessian, batch by batch."""

from vitscope.measures.hessian.measure import (
    SHARES,
    Settings,
    choose_batches,
    refuse_batches,
    work_of_products,
)
from vitscope.measures.measure import Case, FigureKind, Given, Measure, Work


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


# Its settings are those of the largest eigenvalues.
MEASURE = Measure(
    needs="loss",
    figures={"hessian_density": FigureKind(snapshots=True)},
    settings_of=("hessian", Settings),
    arguments=choose_probes,
    takes=count_passes,
    shares=SHARES,
    refuse=refuse_batches,
)
