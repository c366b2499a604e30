"""The table `frequency_noise`: one row per model and frequency.

The noise is drawn for every image, channel and draw: random signs times `eps`, filtered to the
Fourier components in the ring; the real part is added to the normalized image. The ring lies
between two squares around frequency 0, with sides of `2 * int((frequency ± width) * image_size /
2)` components, at least none and at most the whole plane. By definition they reach one component
further to negative frequencies than to positive ones. Settings are taken as decimals, so that
rounding moves no border. Images need an even size, and every ring a component; otherwise the study
is refused when it is read.

The signs depend only on the number of the draw and the row of the image in its split: all models
and frequencies get the same. In `accuracy` and in the interval, an image counts with the share of
its draws that are classified correctly; the interval is for the difference to the same image
without noise, and null for a single image.
"""

from vitscope.files.tables import Table
from vitscope.measures.columns import CHANGE

TABLE = Table(
    "frequency_noise",
    {
        "model": ("string", "model, as the study names it"),
        "frequency": ("float64", "frequency of the noise, in units of pi"),
        "width": ("float64", "half of the width of the ring of frequencies, in units of pi"),
        "eps": ("float64", "size of the noise before the mask, on normalized images"),
        "image_size": ("int32", "side of the images, in pixels"),
        "components": ("int32", "Fourier components that lie in the ring"),
        "images": ("int64", "number of images"),
        "seeds": ("int32", "number of draws of the noise for every image"),
        **CHANGE,
    },
)
