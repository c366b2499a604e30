"""The batches of images that an HSIC is estimated of."""

# An unbiased HSIC divides by the number of images less three.
LEAST_BATCH = 4
