"""What the setting `analysis.fourier.radial` decides."""

import pytest

from tests.runs.copies import edited

pytestmark = pytest.mark.workflow


def test_without_the_radial_profile_a_figure_takes_no_whole_transform(fresh):
    def off(text: str) -> str:
        return text.replace("\nanalysis:\n", "\nanalysis:\n  fourier: {radial: false}\n")

    assert fresh.plan("figures/fig2a.pdf")["measure_spectrum"] == 2
    with edited(fresh.root / "config" / "studies" / "mini.yaml", off):
        plan = fresh.plan("figures/fig2a.pdf")
    assert "measure_spectrum" not in plan
    assert plan["measure_diagonal"] == plan["merge_fourier"] == plan["extract_latents"] == 2
