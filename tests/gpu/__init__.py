"""The same measurements on a CPU and on a GPU."""
