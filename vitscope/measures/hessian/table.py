"""The table `hessian`: one row per model, snapshot, batch and rank.

**What is differentiated.** The loss of one batch of augmented images (`analysis.augmented`), in all
trainable parameters: the mean cross-entropy of the mixed and smoothed targets, and the weight decay
term. The model is in evaluation mode: no dropout, no stochastic depth, and batch normalization by
its running statistics. The weight decay term is `weight_decay` / 2 times the sum of squares of the
parameters that AdamW decays in training (matrices and kernels, neither biases nor norms). Its
Hessian is `weight_decay` on the diagonal, which raises every eigenvalue by at most this. The
paper's landscape adds a sum of 2-norms instead: training does not descend it, and it has no Hessian
where a tensor is zero. `analysis.hessian.l2: false` leaves the term out.

**How.** Lanczos, with every new vector made orthogonal to all before it. It starts from random
signs that depend only on the batch, and ends when the residuals of the `top` eigenvalues of largest
magnitude are within `tolerance`. At most 64 vectors are in memory; then it restarts from the 32
best approximations. On the models of `mini` it takes 14 to 29 products with the Hessian per batch,
where ARPACK (`scipy.sparse.linalg.eigsh`), which checks its residuals once per restart, takes 21 to
33 and returns no residuals. A product is one backward pass through the graph of the gradient, which
is built once per batch: 2.2 times the time of a forward and a backward pass. Building the graph for
every product takes 3.2 to 3.8 times, the forward derivative of the gradient 3.9 to 4.7 times, and
several vectors at once, by `vmap`, are no faster than one after another. The graph of a batch stays
in memory: lower `analysis.hessian.batch_size` if it is too large.

**How good.** `residual` comes from the recurrence of Lanczos: an eigenvalue of H lies within the
residual, times the largest magnitude, of the value in the table; usually it is much nearer, by the
square of the residual over the gap. Products have single precision, which adds about 1e-5, so a
lower `tolerance` is of no use. `converged` is false if `iterations` steps were not enough. The
value is then an approximation from within the spectrum; the log of the job and the legend of the
figure count such values. If several eigenvalues are exactly equal, one may stand for all.

Before any spectrum, a job builds the Hessian of eight images twice and refuses a network for which
they differ by more than rounding, for example because dropout stays on, or for which it is not
symmetric. Attention is computed without fused kernels, which have no second derivative.
"""

from vitscope.files.tables import Table

TABLE = Table(
    "hessian",
    {
        "model": ("string", "model, as the study names it"),
        "snapshot": ("string", "moment of training; end for the trained model"),
        "batch": ("int32", "batch of augmented images, from 0"),
        "images": ("int32", "images of the batch"),
        "rank": ("int32", "order by magnitude, 1 for the largest"),
        "eigenvalue": ("float64", "eigenvalue of the Hessian of the loss on the batch"),
        "residual": ("float64", "|Hv - av| for the unit vector v, over the largest magnitude"),
        "iterations": ("int32", "steps of Lanczos on this batch"),
        "converged": ("bool", "whether the residual is within the tolerance"),
    },
)
