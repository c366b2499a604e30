"""The table `hessian`: the largest eigenvalues of the Hessian."""

import pyarrow as pa

from vitscope.files.tables import Table

TABLE = Table(
    "hessian",
    {
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
)
