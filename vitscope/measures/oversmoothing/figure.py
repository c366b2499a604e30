from vitscope.drawing.axes import begin_at_zero
from vitscope.drawing.charts import Chart, Rows, Steps

plot_token_similarity = Chart(
    Rows("Cosine similarity of tokens", Steps("similarity"), scales="shared")
)
plot_mean_token = Chart(
    Rows("Share of the mean token", Steps("share"), scale=begin_at_zero, scales="shared")
)
