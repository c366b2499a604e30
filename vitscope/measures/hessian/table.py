"""The table `hessian`: one row per model, snapshot, batch and rank.

**What is differentiated.** The loss of one batch of augmented images (`analysis.augmented`), in all
trainable parameters: the mean cross-entropy of the mixed and smoothed targets, and the weight decay
term. The model is in evaluation mode: no dropout, no stochastic depth, and batch normalization by
its running statistics. The weight decay term is `weight_decay` / 2 times the sum of squares of the
parameters that AdamW decays in training (matrices and kernels, neither biases nor norms). Its
Hessian is `weight_decay` on the diagonal, which moves every eigenvalue up by that at most. The
paper's landscape adds a sum of 2-norms instead: it is not what training descends, and has no
Hessian where a tensor is zero. `analysis.hessian.l2: false` leaves the term out.

**How.** Lanczos, every new vector made orthogonal to all before it. It starts from random signs
that depend on the batch alone, and ends as soon as the residuals of the `top` eigenvalues of the
largest magnitude are within `tolerance`. At most 64 vectors are in memory: then it restarts from
the 32 best approximations. On the models of `mini` it takes 14 to 29 products with the Hessian per
batch, where ARPACK (`scipy.sparse.linalg.eigsh`), which looks at its residuals once per restart,
takes 21 to 33 and gives no residuals. A product is one backward pass through the graph of the
gradient, which is built once per batch: 2.2 times the time of a forward and a backward pass.
Building the graph for every product takes 3.2 to 3.8 times, the forward derivative of the gradient
3.9 to 4.7 times, and several vectors at once, by `vmap`, are no faster than one after another. The
graph keeps what a batch needs in memory: lower `analysis.hessian.batch_size` if that is too much.

**How good.** `residual` is what the recurrence of Lanczos gives: there is an eigenvalue of H within
it, times the largest magnitude, of the one in the table; usually much nearer, by the square of the
residual over the gap. Products are of single precision, which adds about 1e-5: a lower `tolerance`
tells nothing. `converged` is false where `iterations` steps were not enough. The value is then an
approximation from within the spectrum; the job's log says how many there are, and so does the
legend of the figure. Of eigenvalues that are exactly equal, one may stand for all.

Before any spectrum, a job builds the Hessian of eight images twice and refuses one that differs by
more than rounding, as with a dropout that stays on, or that is not symmetric. Attention is computed
without fused kernels, which have no second derivative.
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
        "residual": ("float64", "|Hv - av| of a unit vector v, over the largest magnitude"),
        "iterations": ("int32", "steps of Lanczos on this batch"),
        "converged": ("bool", "whether the residual is within the tolerance"),
    },
)
