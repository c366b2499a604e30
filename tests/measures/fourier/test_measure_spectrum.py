from pathlib import Path

import pytest

from vitscope.errors import VitscopeError
from vitscope.settings.loading import BUNDLED_STUDIES, load_study


def test_a_study_whose_middle_band_ends_before_it_begins_is_refused(tmp_path: Path) -> None:
    text = (BUNDLED_STUDIES / "mini.yaml").read_text()
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace("analysis:\n", "analysis:\n  spectrum: {edges: [0.5, 0.25]}\n"))
    with pytest.raises(VitscopeError, match=r"spectrum.edges: found \[0.5, 0.25\], allowed: two"):
        load_study(path)
