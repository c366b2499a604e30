from pathlib import Path

import numpy as np
import pytest
import torch

from tests.helpers.networks import every_mini, hooks_of, mini, mini_blocks, read
from tests.helpers.processes import python
from vitscope.files.tensors import TensorFile
from vitscope.networks.running.extraction import write_latents
from vitscope.package_data import ROOT

IMAGES = torch.randn(5, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def shapes_of(name: str) -> list[tuple[int, int, int]]:
    table = mini_blocks(name).table
    return list(table[["channels", "height", "width"]].itertuples(index=False, name=None))


@every_mini
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_latents_are_those_of_a_forward_pass(tmp_path: Path, name: str, dtype: str) -> None:
    model, cut_points = mini(name)
    path = tmp_path / "latents"
    shapes = shapes_of(name)
    batches = IMAGES.split(2)
    write_latents(model, cut_points, shapes, batches, 5, path, dtype=dtype, metadata={"a": "b"})

    latents = TensorFile(path)
    assert latents.metadata == {"a": "b"}
    assert latents.names == [point.name for point in cut_points]
    expected = [read(model, cut_points, batch)[1] for batch in batches]
    for point, *parts in zip(cut_points, *expected, strict=True):
        values = torch.cat(parts)
        if dtype == "bfloat16":
            values = values.bfloat16().view(torch.uint16)
        np.testing.assert_array_equal(latents.array(point.name), values.numpy(), strict=True)


def test_a_model_in_training_is_set_to_inference(tmp_path: Path) -> None:
    model, cut_points = mini("resnet")
    _, expected = read(model, cut_points, IMAGES)
    shapes = shapes_of("resnet")
    write_latents(model.train(), cut_points, shapes, [IMAGES], 5, tmp_path / "x")
    last = TensorFile(tmp_path / "x").array(cut_points[-1].name)
    np.testing.assert_array_equal(last, expected[-1])


def test_too_few_images_leave_no_file(tmp_path: Path) -> None:
    model, cut_points = mini("vit")
    before = hooks_of(model)
    with pytest.raises(ValueError, match="got 5 images, expected 6"):
        write_latents(model, cut_points, shapes_of("vit"), [IMAGES], 6, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
    assert hooks_of(model) == before


PEAK = r"""
import re, sys
from pathlib import Path
import torch
from tests.helpers.networks import mini
from tests.networks.running.test_latents import shapes_of
from vitscope.files.tensors import TensorFile
from vitscope.measures.feature_variance.compute import measure_feature_variance
from vitscope.measures.given import OnLatents
from vitscope.networks.running.extraction import write_latents

torch.set_num_threads(1)
count, path = int(sys.argv[1]), sys.argv[2]
model, cut_points = mini("vit")
shapes = shapes_of("vit")
batches = (torch.zeros(16, 3, 32, 32) for _ in range(count // 16))
write_latents(model, cut_points, shapes, batches, count, path)
measure_feature_variance(OnLatents(TensorFile(path), 0))
# Not ru_maxrss: that one starts from the memory of the process that started this one.
print(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.nightly
def test_memory_does_not_grow_with_the_images(tmp_path: Path) -> None:
    """The latents of 1,024 images are 280 MiB larger than those of 64."""

    def peak_kib(count: int) -> int:
        return int(python(PEAK, count, tmp_path / "latents", cwd=ROOT))

    assert peak_kib(1024) - peak_kib(64) < 30 * 1024
    assert (tmp_path / "latents").stat().st_size < 20 * 2**20
