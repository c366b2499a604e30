"""The corruptions of Hendrycks & Dietterich (2019): fifteen, in four groups, at five severities."""

GROUPS = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    "weather": ("snow", "frost", "fog", "brightness"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
}
CORRUPTIONS = tuple(name for group in GROUPS.values() for name in group)
SEVERITIES = (1, 2, 3, 4, 5)
# Names in tables for uncorrupted images, and for the mean over all corruptions.
CLEAN, MEAN = "none", "mean"
