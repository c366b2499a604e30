"""The tables: their columns, and how they are written and read.

Parquet's own checksums are of pages alone: headers, counts and metadata may change unseen. So a
table carries a seal, the CRC-32 of all else in the file, between its pages and its footer, where
other readers do not look.
"""

import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from vitscope.errors import VitscopeError
from vitscope.files.whole import atomic_path

Columns = dict[str, tuple[pa.DataType, str]]

SEAL, SEAL_BYTES = b"vitscope", 12
# Tells in the metadata of a table that there must be a seal; bundled histories are older than that.
SEALED = "sealed"

_CUT_POINT: Columns = {
    "model": (pa.string(), "model, as the study names it"),
    "index": (pa.int32(), "position of the cut point, 0 for the stem"),
    "name": (pa.string(), "name of the cut point in the model"),
    "kind": (pa.string(), "stem, conv, msa, mlp, pool or head"),
    "stage": (pa.int32(), "stage of the model, 0 for the stem"),
    "depth": (pa.float64(), "normalized depth: index over the largest index"),
    "channels": (pa.int32(), "channels of the feature map"),
    "height": (pa.int32(), "height of the feature map"),
    "width": (pa.int32(), "width of the feature map"),
}

_CHANGE: Columns = {
    "clean_accuracy": (pa.float64(), "share of the images whose class is found, undisturbed"),
    "accuracy": (pa.float64(), "share of the images whose class is found, disturbed"),
    "change": (pa.float64(), "accuracy minus clean_accuracy, in percentage points"),
    "ci_low": (pa.float64(), "lower end of the 95 % bootstrap interval of the change over images"),
    "ci_high": (pa.float64(), "upper end of the 95 % bootstrap interval of the change over images"),
}

TABLES: dict[str, Columns] = {
    "blocks": {
        **_CUT_POINT,
        "parameters": (pa.int64(), "parameters between this cut point and the one before"),
    },
    "variance_per_image": {
        "index": (pa.int32(), "position of the cut point, 0 for the stem"),
        "image": (pa.int64(), "position of the image among those that are measured"),
        "variance": (pa.float64(), "variance over space, mean over channels"),
    },
    "feature_variance": {
        **_CUT_POINT,
        "images": (pa.int64(), "number of images"),
        "variance": (pa.float64(), "variance over space, mean over channels and images"),
        "ci_low": (pa.float64(), "lower end of the 95 % bootstrap interval over images"),
        "ci_high": (pa.float64(), "upper end of the 95 % bootstrap interval over images"),
    },
    "amplitude_per_image": {
        "index": (pa.int32(), "position of the cut point, 0 for the stem"),
        "image": (pa.int64(), "position of the image among those that are measured"),
        "step": (pa.int32(), "frequency, in steps from 0 to the highest"),
        "log_amplitude": (pa.float32(), "logarithm of the Fourier amplitude, mean over channels"),
    },
    "fourier": {
        **_CUT_POINT,
        "images": (pa.int64(), "number of images"),
        "measure": (pa.string(), "diagonal: along the half-diagonal; radial: azimuthal mean"),
        "frequency": (pa.float64(), "frequency, in units of pi"),
        "log_amplitude": (pa.float64(), "log amplitude, mean over channels and images"),
        "delta_log_amplitude": (pa.float64(), "log amplitude minus that at frequency 0"),
        "ci_low": (pa.float64(), "lower end of the 95 % bootstrap interval of the difference"),
        "ci_high": (pa.float64(), "upper end of the 95 % bootstrap interval of the difference"),
    },
    "band_variance_per_image": {
        "index": (pa.int32(), "position of the cut point, 0 for the stem"),
        "image": (pa.int64(), "position of the image among those that are measured"),
        "band": (pa.string(), "low, middle or high"),
        "variance": (pa.float64(), "variance over space in the band, mean over channels"),
    },
    "spectrum": {
        **_CUT_POINT,
        "images": (pa.int64(), "number of images"),
        "band": (pa.string(), "low, middle or high"),
        "above": (pa.float64(), "frequency above which the band begins, in units of pi"),
        "up_to": (pa.float64(), "highest frequency of the band; the root of 2 is in the corners"),
        "components": (pa.int32(), "Fourier components of a map that lie in the band"),
        "variance": (pa.float64(), "variance over space in the band, mean over channels, images"),
        "share": (pa.float64(), "share of the variance of all bands; null where it is undefined"),
        "ci_low": (pa.float64(), "lower end of the 95 % bootstrap interval of the share"),
        "ci_high": (pa.float64(), "upper end of the 95 % bootstrap interval of the share"),
    },
    "frequency_noise": {
        "model": (pa.string(), "model, as the study names it"),
        "frequency": (pa.float64(), "frequency of the noise, in units of pi"),
        "width": (pa.float64(), "half of the width of the ring of frequencies, in units of pi"),
        "eps": (pa.float64(), "size of the noise before it is masked, on normalized images"),
        "image_size": (pa.int32(), "side of the images, in pixels"),
        "components": (pa.int32(), "Fourier components that lie in the ring"),
        "images": (pa.int64(), "number of images"),
        "seeds": (pa.int32(), "number of draws of the noise for every image"),
        **_CHANGE,
    },
    "cka_per_shard": {
        "index": (pa.int32(), "position of a cut point"),
        "other_index": (pa.int32(), "position of another, or of the same"),
        "first_image": (pa.int64(), "position of the batch's first image among those measured"),
        "images": (pa.int32(), "images of the batch"),
        "hsic": (pa.float64(), "unbiased HSIC of the two feature maps over the batch"),
    },
    "cka": {
        "model": (pa.string(), "model, as the study names it"),
        "index": (pa.int32(), "position of a cut point, 0 for the stem"),
        "other_index": (pa.int32(), "position of another, or of the same"),
        "images": (pa.int64(), "number of images"),
        "batches": (pa.int32(), "number of batches that the HSIC is averaged over"),
        "hsic": (pa.float64(), "unbiased HSIC, mean over batches"),
        "cka": (pa.float64(), "HSIC over the root of the product of those of each with itself"),
    },
    "lesion": {
        **_CUT_POINT,
        "images": (pa.int64(), "number of images"),
        **_CHANGE,
    },
    "predictions": {
        "image": (pa.int64(), "row of the image in the artefact of its split"),
        "label": (pa.int32(), "class of the image"),
        "prediction": (pa.int32(), "class with the highest probability"),
        "confidence": (pa.float64(), "that probability"),
        "nll": (pa.float64(), "negative log-likelihood of the label"),
        "brier": (pa.float64(), "sum over classes of the squared error of the probability"),
        "top5": (pa.bool_(), "whether the label is among the five most probable classes"),
    },
    "classification": {
        "model": (pa.string(), "model, as the study names it"),
        "images": (pa.int64(), "number of images"),
        "accuracy": (pa.float64(), "share of the images whose class is found"),
        "accuracy_90": (pa.float64(), "the same among confident predictions; null if none is"),
        "nll": (pa.float64(), "negative log-likelihood, mean over images"),
        "unconfidence_90": (pa.float64(), "share of unconfident among wrong predictions"),
        "iou": (pa.float64(), "intersection over union, mean over classes"),
        "iou_90": (pa.float64(), "the same among confident predictions"),
        "frequency_90": (pa.float64(), "share of predictions that are confident"),
        "top5": (pa.float64(), "share of images whose class is among the five most probable"),
        "brier": (pa.float64(), "Brier score, summed over classes, mean over images"),
        "ece": (pa.float64(), "expected calibration error, in ten bins of equal width"),
        "signed_ece": (pa.float64(), "the same with its sign: positive where overconfident"),
    },
    "reliability": {
        "model": (pa.string(), "model, as the study names it"),
        "bin": (pa.int32(), "bin of confidence, from 0"),
        "low": (pa.float64(), "confidence above which the bin begins"),
        "high": (pa.float64(), "highest confidence of the bin"),
        "images": (pa.int64(), "number of images in the bin"),
        "accuracy": (pa.float64(), "share of these whose class is found; null if there are none"),
        "confidence": (pa.float64(), "their mean confidence; null if there are none"),
    },
    "shape_texture": {
        "model": (pa.string(), "model, as the study names it"),
        "class_name": (pa.string(), "class of the shape; all for all images"),
        "images": (pa.int64(), "number of images whose cues are of two classes"),
        "shape_accuracy": (pa.float64(), "share of the images that are told by their shape"),
        "texture_accuracy": (pa.float64(), "share of the images that are told by their texture"),
        "shape_bias": (pa.float64(), "share of shape in decisions for either; null if none is"),
        "ci_low": (pa.float64(), "lower end of the 95 % bootstrap interval of the shape bias"),
        "ci_high": (pa.float64(), "upper end of the 95 % bootstrap interval of the shape bias"),
    },
    "robustness": {
        "model": (pa.string(), "model, as the study names it"),
        "corruption": (pa.string(), "name of the corruption; none for images as they are"),
        "severity": (pa.int32(), "1 to 5; 0 for images as they are"),
        "images": (pa.int64(), "number of images"),
        "accuracy": (pa.float64(), "share of the images whose class is found"),
        "nll": (pa.float64(), "negative log-likelihood, mean over images"),
        "ece": (pa.float64(), "expected calibration error, in ten bins of equal width"),
    },
    "corruption_error": {
        "model": (pa.string(), "model, as the study names it"),
        "corruption": (pa.string(), "name of the corruption; mean for the mean of all"),
        "images": (pa.int64(), "number of images"),
        "clean_error": (pa.float64(), "share of wrong predictions on images as they are"),
        "error": (pa.float64(), "share of wrong predictions, mean over severities"),
        "relative_error": (pa.float64(), "error minus clean_error"),
    },
    "landscape": {
        "model": (pa.string(), "model, as the study names it"),
        "x": (pa.float64(), "steps along the first direction"),
        "y": (pa.float64(), "steps along the second direction"),
        "images": (pa.int64(), "number of augmented images"),
        "clean": (pa.bool_(), "whether the images are as they are, and not augmented"),
        "precision": (pa.string(), "of the forward passes: float32 or bfloat16"),
        "weight_decay": (pa.float64(), "weight of the L2 term; 0 where the loss is without it"),
        "loss": (pa.float64(), "nll + weight_decay x l2, as the paper draws it; null as nll"),
        "loss_squared": (pa.float64(), "nll + weight_decay / 2 x l2_squared, whose slope decays"),
        "nll": (pa.float64(), "negative log-likelihood of the targets; null where logits overflow"),
        "l2": (pa.float64(), "sum of the 2-norms of all parameter tensors"),
        "l2_squared": (pa.float64(), "sum of their squares"),
        "accuracy": (pa.float64(), "share of the images whose likeliest target is found"),
        "accuracy_90": (pa.float64(), "the same among confident predictions; null if none is"),
        "unconfidence_90": (pa.float64(), "share of unconfident among wrong predictions"),
        "iou": (pa.float64(), "intersection over union, mean over classes"),
        "iou_90": (pa.float64(), "the same among confident predictions"),
        "frequency_90": (pa.float64(), "share of predictions that are confident"),
        "top5": (pa.float64(), "share of images whose target is among the five most probable"),
        "brier": (pa.float64(), "Brier score, summed over classes, mean over images"),
        "ece": (pa.float64(), "expected calibration error, in ten bins of equal width"),
        "signed_ece": (pa.float64(), "the same with its sign: positive where overconfident"),
    },
    "hessian": {
        "model": (pa.string(), "model, as the study names it"),
        "snapshot": (pa.string(), "moment of training; end for the trained model"),
        "batch": (pa.int32(), "batch of augmented images, from 0"),
        "images": (pa.int32(), "images of the batch"),
        "rank": (pa.int32(), "order by magnitude, 1 for the largest"),
        "eigenvalue": (pa.float64(), "eigenvalue of the Hessian of the loss on the batch"),
        "residual": (pa.float64(), "|Hv - av| of a unit vector v, over the largest magnitude"),
        "iterations": (pa.int32(), "steps of Lanczos on this batch"),
        "converged": (pa.bool_(), "whether the residual is within the tolerance"),
    },
    "hessian_density": {
        "model": (pa.string(), "model, as the study names it"),
        "snapshot": (pa.string(), "moment of training; end for the trained model"),
        "batch": (pa.int32(), "batch of augmented images, from 0"),
        "probe": (pa.int32(), "random vector that Lanczos started from"),
        "node": (pa.float64(), "node of the quadrature, an eigenvalue"),
        "weight": (pa.float64(), "its weight; those of a probe add up to 1"),
    },
    "trajectory": {
        "model": (pa.string(), "model, as the study names it"),
        "moment": (pa.string(), "epoch of training, or name of the snapshot"),
        "order": (pa.int32(), "position among the moments, from 0"),
        "radius": (pa.float64(), "distance to the last weights, over that of the first ones"),
        "angle": (pa.float64(), "between the ways from the last weights to these and to the first"),
        "ends_warmup": (pa.bool_(), "whether the warm-up is known to end here"),
        "source": (pa.string(), "history: recorded in training; snapshots: from their weights"),
    },
    "fit": {
        "model": (pa.string(), "model, as the study names it"),
        "metric": (pa.string(), "error_percent on test images, or nll_train on augmented ones"),
        "images": (pa.int64(), "number of images"),
        "value": (pa.float64(), "share whose class is not found, in percent; or the mean NLL"),
        "ci_low": (pa.float64(), "lower end of the 95 % bootstrap interval; null for nll_train"),
        "ci_high": (pa.float64(), "upper end of the 95 % bootstrap interval; null for nll_train"),
    },
    "training_history": {
        "epoch": (pa.int32(), "epochs done"),
        "loss": (pa.float64(), "mean training loss of the epoch, on augmented images"),
        "learning_rate": (pa.float64(), "learning rate of the last step"),
        "test_accuracy": (pa.float64(), "share of test images whose class is found"),
        "radius": (pa.float64(), "distance to the last weights, over that of the first ones"),
        "angle": (pa.float64(), "between the ways from the last weights to these and to the first"),
    },
    "claims": {
        "figure": (pa.string(), "figure that the claim is about"),
        "model": (pa.string(), "model, as the study names it"),
        "versus": (pa.string(), "model that it is compared with; null where the claim is of one"),
        "snapshot": (pa.string(), "moment of training; null where the figure is about none"),
        "claim": (pa.string(), "name of the claim"),
        "statement": (pa.string(), "the claim in words"),
        "source": (pa.string(), "where in the paper it is made"),
        "measure": (pa.string(), "what the values are: the share of what, or which difference"),
        "published_series": (pa.string(), "published curve, or curves, of the figure; or null"),
        "published_count": (pa.int32(), "on the published points: how many do as claimed"),
        "published_total": (pa.int32(), "of how many; null where a difference is taken"),
        "published_value": (pa.float64(), "their share, or the difference; null if unknown"),
        "measured_count": (pa.int32(), "as measured: how many do as claimed"),
        "measured_total": (pa.int32(), "of how many; null where a difference of values is taken"),
        "measured_value": (pa.float64(), "their share, or the difference; null if undefined"),
        "versus_count": (pa.int32(), "measured_count of the other model, where shares differ"),
        "versus_total": (pa.int32(), "measured_total of the other model, where shares differ"),
        "ci_low": (pa.float64(), "lower end of the 95 % interval of measured_value; or null"),
        "ci_high": (pa.float64(), "upper end of the 95 % interval of measured_value; or null"),
        "holds_above": (pa.float64(), "the claim holds where measured_value is above this"),
        "holds": (pa.bool_(), "whether it holds; null where measured_value is"),
        "apart": (pa.bool_(), "whether the intervals of each model alone are apart; or null"),
    },
    "agreement": {
        "figure": (pa.string(), "figure that shows both curves"),
        "model": (pa.string(), "model, as the study names it"),
        "published_series": (pa.string(), "published curve, or curves, of the same checkpoint"),
        "published_points": (pa.int32(), "points that are published"),
        "measured_points": (pa.int32(), "points that are measured"),
        "rank_correlation": (pa.float64(), "Spearman's, where the published points lie, or null"),
        "normalized_rmse": (pa.float64(), "root mean square difference over the published range"),
    },
}


def schema_of(name: str) -> pa.Schema:
    """Return the Arrow schema of a table."""
    return pa.schema([pa.field(column, kind) for column, (kind, _) in TABLES[name].items()])


def write_table(
    name: str, frame: pd.DataFrame, path: Path | str, metadata: Mapping[str, str] | None = None
) -> None:
    """Write a frame as the table `name`; its columns must be exactly the documented ones."""
    schema = schema_of(name)
    if set(frame.columns) != set(schema.names):
        raise ValueError(f"{name}: columns {sorted(frame.columns)}, not {sorted(schema.names)}")
    table = pa.Table.from_pandas(frame[schema.names], schema=schema, preserve_index=False)
    told = {**(metadata or {}), "table": name, SEALED: "crc32"}
    written = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(told), written)
    with atomic_path(path) as partial:
        partial.write_bytes(_sealed(written.getvalue().to_pybytes()))


def _footer(data: bytes) -> int:
    """Return where the footer of a parquet file begins."""
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def _sealed(data: bytes) -> bytes:
    """Return a parquet file with the checksum of all of it."""
    footer = _footer(data)
    return data[:footer] + SEAL + zlib.crc32(data).to_bytes(4, "little") + data[footer:]


def _seal_holds(data: bytes) -> bool | None:
    """Tell whether a parquet file is what was written; None if it has no seal."""
    footer = _footer(data)
    start = footer - SEAL_BYTES
    if start < 0 or not data.startswith(SEAL, start):
        return None
    found = zlib.crc32(data[footer:], zlib.crc32(data[:start]))
    return found.to_bytes(4, "little") == data[footer - 4 : footer]


@contextmanager
def _opened(path: Path | str) -> Iterator[pq.ParquetFile]:
    try:
        data = Path(path).read_bytes()
        holds = _seal_holds(data)
        if holds is not False:
            # From memory and in this thread: Arrow's own threads, when they read from a file of
            # Python, may still be at it when the interpreter ends, and abort it.
            file = pq.ParquetFile(pa.BufferReader(data))
            holds = holds or SEALED.encode() not in (file.schema_arrow.metadata or {})
        if not holds:
            raise VitscopeError(
                f"{path} is damaged: it is not what was written; delete it and run again."
            )
        yield file
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        # Arrow tells of damaged pages with an OSError that has no number.
        if isinstance(error, OSError) and error.strerror:
            raise VitscopeError(f"Cannot read the table {path}: {error.strerror}.") from error
        raise VitscopeError(
            f"{path} is not a readable parquet table: delete it and run again."
        ) from error


def read_table(name: str, path: Path | str) -> pd.DataFrame:
    """Read the table `name`, checking its columns and types."""
    with _opened(path) as file:
        table = file.read(use_threads=False)
    if table.schema.remove_metadata() != schema_of(name):
        raise VitscopeError(
            f"{path} is not a {name} table of this version: delete it and run again."
        )
    frame: pd.DataFrame = table.to_pandas(use_threads=False)
    return frame


def read_metadata(path: Path | str) -> dict[str, str]:
    """Return the text that was written with a table."""
    with _opened(path) as file:
        metadata = file.schema_arrow.metadata or {}
    told = {key.decode(): value.decode() for key, value in metadata.items()}
    return {key: value for key, value in told.items() if key != SEALED}
