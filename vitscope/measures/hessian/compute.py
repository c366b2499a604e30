from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from vitscope.files.arrays import Array
from vitscope.measures.given import OnLoss
from vitscope.measures.hessian.lanczos import lanczos_quadrature, largest_eigenvalues
from vitscope.measures.hessian.operator import Curvature, Hessian, Loss
from vitscope.networks.building.networks import plain_attention
from vitscope.networks.finding.blocks import LAYERS, place_parameters_in_blocks
from vitscope.training.steps import trained_parameters


def measure_hessian(
    given: OnLoss,
    batches: Sequence[int],
    batch_size: int,
    weight_decay: float,
    *,
    top: int,
    tolerance: float,
    iterations: int,
) -> pd.DataFrame:
    def eigenvalues_of_batch(batch: int, hessian: Hessian) -> pd.DataFrame:
        found = largest_eigenvalues(hessian, hessian.start(batch), top, tolerance, iterations)
        converged = found.residuals <= tolerance
        if not converged.all():
            given.say(
                f"batch {batch}: {(~converged).sum()} of {len(converged)} eigenvalues are not "
                f"within {tolerance:g} after {found.steps} steps, but within "
                f"{found.residuals.max():.2g}: raise analysis.hessian.iterations"
            )
        return pd.DataFrame(
            {
                "batch": batch,
                "images": batch_size,
                "rank": np.arange(1, len(converged) + 1),
                "eigenvalue": found.eigenvalues,
                "residual": found.residuals,
                "iterations": found.steps,
                "converged": converged,
            }
        )

    return Loss(given, batch_size, weight_decay).over_batches(batches, eigenvalues_of_batch)


def measure_hessian_density(
    given: OnLoss,
    batches: Sequence[int],
    batch_size: int,
    weight_decay: float,
    *,
    probes: int,
    steps: int,
) -> pd.DataFrame:
    def density_of_batch(batch: int, hessian: Hessian) -> pd.DataFrame:
        tables = []
        for probe in range(probes):
            nodes, weights = lanczos_quadrature(hessian, hessian.start(batch, probe), steps)
            table = {"batch": batch, "probe": probe, "node": nodes, "weight": weights}
            tables.append(pd.DataFrame(table))
        return pd.concat(tables)

    return Loss(given, batch_size, weight_decay).over_batches(batches, density_of_batch)


# The number of images in the pass that finds the layers.
IMAGES = 2


@dataclass(frozen=True)
class Part:
    """Describes a part of a network; `parameters` holds the indices of its trained parameters."""

    of: str
    index: int
    part: str
    parameters: list[int]


def hessian_parts(given: OnLoss) -> list[Part]:
    """Return the parts with trained parameters: the network, its blocks, its kinds of layers."""
    model, points = given.network.to(given.device).eval(), given.cut_points
    pixels, _ = given.images.rows(0, IMAGES)
    with plain_attention(model):
        found = place_parameters_in_blocks(model, points, pixels.to(given.device))
    places = [found[name] for name in trained_parameters(model)]
    names = [*(point.name for point in points), "head"]
    kinds = {
        "block": ([place.block for place in places], names),
        "layer": ([LAYERS.index(place.layer) for place in places], LAYERS),
    }
    parts = [Part("network", 0, "network", [*range(len(places))])]
    for of, (numbers, labels) in kinds.items():
        for index, label in enumerate(labels):
            within = [at for at, number in enumerate(numbers) if number == index]
            parts += [Part(of, index, label, within)] if within else []
    return parts


def estimate_traces(operator: Curvature, batch: int, probes: int) -> Array:
    """Estimate each parameter tensor's part of the trace, by Hutchinson's method."""
    estimates = []
    for probe in range(probes):
        start = operator.start(batch, probe)
        vector = start.signs(start.chance())
        terms = (vector * operator(vector)).double()
        estimates.append(torch.stack([part.sum() for part in torch.split(terms, operator.sizes)]))
    return torch.stack(estimates).mean(0).cpu().numpy()


def measure_curvature(
    given: OnLoss,
    batches: Sequence[int],
    batch_size: int,
    weight_decay: float,
    *,
    probes: int,
    tolerance: float,
    iterations: int,
) -> pd.DataFrame:
    loss, parts = Loss(given, batch_size, weight_decay), hessian_parts(given)

    def curvature_of_batch(batch: int, hessian: Hessian) -> pd.DataFrame:
        whole = estimate_traces(hessian, batch, probes)
        linear = estimate_traces(loss.gauss_newton(batch), batch, probes)
        rows = []
        for part in parts:
            block = hessian.within(part.parameters)
            found = largest_eigenvalues(block, block.start(batch), 1, tolerance, iterations)
            (eigenvalue,), (residual,) = found.eigenvalues, found.residuals
            rows.append(
                {
                    **vars(part),
                    "parameters": block.size,
                    "trace": whole[part.parameters].sum(),
                    "gauss_newton_trace": linear[part.parameters].sum(),
                    "eigenvalue": eigenvalue,
                    "residual": residual,
                    "converged": residual <= tolerance,
                }
            )
        table = pd.DataFrame(rows).assign(batch=batch)
        failed = int((~table["converged"]).sum())
        if failed:
            given.say(
                f"batch {batch}: {failed} of {len(table)} eigenvalues have not converged: raise "
                f"analysis.curvature.iterations"
            )
        return table

    return loss.over_batches(batches, curvature_of_batch)
