"""The table `hessian_density`: the spectral density of the Hessian."""

import pyarrow as pa

from vitscope.files.tables import Table

TABLE = Table(
    "hessian_density",
    {
        "model": (pa.string(), "model, as the study names it"),
        "snapshot": (pa.string(), "moment of training; end for the trained model"),
        "batch": (pa.int32(), "batch of augmented images, from 0"),
        "probe": (pa.int32(), "random vector that Lanczos started from"),
        "node": (pa.float64(), "node of the quadrature, an eigenvalue"),
        "weight": (pa.float64(), "its weight; those of a probe add up to 1"),
    },
)
