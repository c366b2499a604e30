from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from vitscope.files.arrays import Array
from vitscope.measures.given import OnLoss
from vitscope.measures.hessian.measure import HESSIAN_TABLE
from vitscope.measures.hessian_operator import Batch, BatchLoss, Curvature, Hessian
from vitscope.measures.lanczos import lanczos_quadrature, largest_eigenvalues
from vitscope.networks.building.networks import plain_attention
from vitscope.networks.finding.blocks import LAYERS, place_parameters_in_blocks
from vitscope.package_data import ROOT
from vitscope.training.steps import trained_parameters

# A bundled spectrum is of the same weights and images if its loss differs by at most this share.
SAME_LOSS = 1e-5


def find_bundled_spectrum(
    spectra: pd.DataFrame, batch: Batch, loss: float, top: int, tolerance: float
) -> pd.DataFrame | None:
    """Return the rows of a bundled spectrum of this batch and loss; None if there are none."""
    size, number = batch
    of_batch = spectra[(spectra["images"] == size) & (spectra["batch"] == number)]
    rows = of_batch[(of_batch["loss"] - loss).abs() <= SAME_LOSS * loss].sort_values("rank")
    whole = rows["rank"].tolist()[:top] == [*range(1, top + 1)]
    return rows[:top] if whole and (rows["residual"][:top] <= tolerance).all() else None


def measure_hessian(
    given: OnLoss,
    batches: Sequence[Batch],
    largest: int,
    weight_decay: float,
    *,
    top: int,
    tolerance: float,
    iterations: int,
    training_batch: int | None = None,
    bundled: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Return the spectrum of each batch, bundled ones where `bundled` names their file."""
    loss = BatchLoss(given, largest, weight_decay)

    def eigenvalues_of_batch(batch: Batch, hessian: Hessian) -> pd.DataFrame:
        size, number = batch
        found = largest_eigenvalues(hessian, hessian.start(number), top, tolerance, iterations)
        converged = found.residuals <= tolerance
        if not converged.all():
            given.say(
                f"batch {number} of {size} images: {(~converged).sum()} of {len(converged)} "
                f"eigenvalues are not within {tolerance:g} after {found.steps} steps, but within "
                f"{found.residuals.max():.2g}: raise analysis.hessian.iterations"
            )
        return pd.DataFrame(
            {
                "images": size,
                "batch": number,
                "rank": np.arange(1, len(converged) + 1),
                "eigenvalue": found.eigenvalues,
                "residual": found.residuals,
                "iterations": found.steps,
                "converged": converged,
                "loss": loss.value(batch),
                "bundled": False,
            }
        )

    known = _bundled_spectra_of_batches(given, loss, batches, bundled, top, tolerance)
    others = [batch for batch in batches if batch not in known]
    measured = [loss.over_batches(others, eigenvalues_of_batch)] if others else []
    table = pd.concat([*known.values(), *measured], ignore_index=True)
    order = {batch: place for place, batch in enumerate(batches)}
    places = [order[each] for each in zip(table["images"], table["batch"], strict=True)]
    table = table.iloc[np.argsort(places, kind="stable")].reset_index(drop=True)
    return table.assign(training_batch=pd.array([training_batch] * len(table), "Int32"))


def _bundled_spectra_of_batches(
    given: OnLoss,
    loss: BatchLoss,
    batches: Sequence[Batch],
    bundled: Mapping[str, str] | None,
    top: int,
    tolerance: float,
) -> dict[Batch, pd.DataFrame]:
    """Return the bundled spectra of the batches that have one; say which sizes lack some."""
    if not bundled:
        return {}
    spectra, found = HESSIAN_TABLE.read(ROOT / bundled["file"]).assign(bundled=True), {}
    sizes = {*spectra["images"]}
    for batch in batches:
        if batch[0] not in sizes:
            continue
        rows = find_bundled_spectrum(spectra, batch, loss.value(batch), top, tolerance)
        if rows is None:
            given.say(
                f"batch {batch[1]} of {batch[0]} images: {bundled['file']} has no spectrum of "
                f"these weights and images, which is measured"
            )
        else:
            found[batch] = rows.drop(columns=["model", "snapshot", "training_batch"])
    return found


def measure_hessian_density(
    given: OnLoss,
    batches: Sequence[Batch],
    largest: int,
    weight_decay: float,
    *,
    probes: int,
    steps: int,
) -> pd.DataFrame:
    def density_of_batch(batch: Batch, hessian: Hessian) -> pd.DataFrame:
        size, number = batch
        tables = []
        for probe in range(probes):
            nodes, weights = lanczos_quadrature(hessian, hessian.start(number, probe), steps)
            table = {"batch": number, "images": size, "probe": probe}
            tables.append(pd.DataFrame({**table, "node": nodes, "weight": weights}))
        return pd.concat(tables)

    return BatchLoss(given, largest, weight_decay).over_batches(batches, density_of_batch)


# The number of images in the pass that finds the layers.
IMAGES = 2


@dataclass(frozen=True)
class NetworkPart:
    """Describes a part of a network; `parameters` holds the indices of its trained parameters."""

    of: str
    index: int
    part: str
    parameters: list[int]


def hessian_parts(given: OnLoss) -> list[NetworkPart]:
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
    parts = [NetworkPart("network", 0, "network", [*range(len(places))])]
    for of, (numbers, labels) in kinds.items():
        for index, label in enumerate(labels):
            within = [at for at, number in enumerate(numbers) if number == index]
            parts += [NetworkPart(of, index, label, within)] if within else []
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
    batches: Sequence[Batch],
    largest: int,
    weight_decay: float,
    *,
    probes: int,
    tolerance: float,
    iterations: int,
) -> pd.DataFrame:
    loss, parts = BatchLoss(given, largest, weight_decay), hessian_parts(given)

    def curvature_of_batch(batch: Batch, hessian: Hessian) -> pd.DataFrame:
        size, number = batch
        whole = estimate_traces(hessian, number, probes)
        linear = estimate_traces(loss.gauss_newton(batch), number, probes)
        rows = []
        for part in parts:
            block = hessian.within(part.parameters)
            found = largest_eigenvalues(block, block.start(number), 1, tolerance, iterations)
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
        table = pd.DataFrame(rows).assign(batch=number, images=size)
        failed = int((~table["converged"]).sum())
        if failed:
            given.say(
                f"batch {number}: {failed} of {len(table)} eigenvalues have not converged: raise "
                f"analysis.curvature.iterations"
            )
        return table

    return loss.over_batches(batches, curvature_of_batch)
