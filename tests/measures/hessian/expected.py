"""How far the table of the default study may differ from the expected one."""

from tests.helpers.expected import Expected

# Eigenvalues have a residual of 1e-3; how many steps they took is the processor's affair.
TABLE = Expected(["model", "snapshot", "batch", "rank"], 0.01, 0.01, ("residual", "iterations"))
