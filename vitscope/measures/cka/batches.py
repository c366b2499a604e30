"""The batches of images that an HSIC is estimated of."""

# An unbiased HSIC divides by what is left of the images without three.
LEAST_BATCH = 4
