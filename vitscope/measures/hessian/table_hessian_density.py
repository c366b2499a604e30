"""The table `hessian_density`: one row per model, snapshot, batch, probe and node.

Stochastic Lanczos quadrature of the same Hessian: from each random vector, `density_steps` steps of
Lanczos give as many nodes and weights (fewer if the spectrum has fewer eigenvalues). The mean over
probes of the sum of `weight` times `node` estimates the trace of the Hessian over the number of
parameters; with the square of `node`, its squared Frobenius norm over that number.
"""

from vitscope.files.tables import Table

TABLE = Table(
    "hessian_density",
    {
        "model": ("string", "model, as the study names it"),
        "snapshot": ("string", "moment of training; end for the trained model"),
        "batch": ("int32", "batch of augmented images, from 0"),
        "probe": ("int32", "random vector that Lanczos started from"),
        "node": ("float64", "node of the quadrature, an eigenvalue"),
        "weight": ("float64", "its weight; those of a probe add up to 1"),
    },
)
