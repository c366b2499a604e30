"""The table `frequency_noise`: accuracy under noise of one frequency."""

import pyarrow as pa

from vitscope.files.tables import Table
from vitscope.measures.columns import CHANGE

TABLE = Table(
    "frequency_noise",
    {
        "model": (pa.string(), "model, as the study names it"),
        "frequency": (pa.float64(), "frequency of the noise, in units of pi"),
        "width": (pa.float64(), "half of the width of the ring of frequencies, in units of pi"),
        "eps": (pa.float64(), "size of the noise before it is masked, on normalized images"),
        "image_size": (pa.int32(), "side of the images, in pixels"),
        "components": (pa.int32(), "Fourier components that lie in the ring"),
        "images": (pa.int64(), "number of images"),
        "seeds": (pa.int32(), "number of draws of the noise for every image"),
        **CHANGE,
    },
)
