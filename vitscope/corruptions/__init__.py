"""The fifteen corruptions of Hendrycks & Dietterich (2019), in four groups, at five severities."""

GROUPS = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    "weather": ("snow", "frost", "fog", "brightness"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
}
CORRUPTIONS = tuple(name for group in GROUPS.values() for name in group)
SEVERITIES = (1, 2, 3, 4, 5)
# The name in tables for uncorrupted images.
CLEAN = "none"
# The name in tables for the mean over all corruptions.
MEAN = "mean"
