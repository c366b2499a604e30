"""Measure what vision transformers do: feature maps, from a checkpoint to a table."""

__version__ = "0.2.0"
