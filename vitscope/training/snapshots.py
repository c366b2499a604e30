"""The moments of training whose weights a study names."""

# The snapshot of a model that is its checkpoint.
END = "end"
