"""The moments of a training whose weights are kept, by their names."""

INIT, WARMUP = "init", "warmup"
# The last of them is the checkpoint of its model.
END = "end"
