"""How far the table of the default study may differ from the expected one."""

from tests.helpers.expected import Expected

# Eigenvalues have a residual of 0.05, which is squared in their error; traces are sums of terms
# that cancel.
TABLE = Expected(
    ["model", "snapshot", "batch", "of", "index"], 0.02, 0.02, ("residual", "converged")
)
