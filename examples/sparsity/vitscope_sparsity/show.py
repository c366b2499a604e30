"""The share of small values by depth."""

from vitscope.drawing.axes import begin_at_zero
from vitscope.drawing.charts import Chart, Rows, Steps

plot_sparsity = Chart(
    Rows("Share of small values", Steps("share"), scale=begin_at_zero, scales="shared")
)
