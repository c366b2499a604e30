import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from vitscope import figures
from vitscope.errors import VitscopeError
from vitscope.tables import TABLES


def test_the_kinds_are_known_without_matplotlib():
    code = "import sys, vitscope.figures; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True)


@pytest.mark.parametrize("kind", figures.KINDS)
def test_each_kind_can_be_drawn_from_tables_that_exist(kind):
    assert callable(import_module(figures.module_of(kind)).plot)
    assert set(figures.KINDS[kind].tables) <= set(TABLES)


def test_an_unknown_kind_is_told_with_the_nearest():
    with pytest.raises(VitscopeError, match="Did you mean 'feature_variance'"):
        figures.draw("feature_varance", {}, [], {})
