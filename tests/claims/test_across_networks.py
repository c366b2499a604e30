"""What the rows of one claim say together, on rows drawn by hand."""

import pandas as pd
import pytest

from vitscope.claims.across_networks import across_networks, say_across

YES, NO, OPEN = "yes, in this network", "no, in this network", "open"
BARE_YES, BARE_NO = "yes, without an interval", "no, without an interval"


def rows(*holds: str) -> pd.DataFrame:
    table = pd.DataFrame({"holds": holds, "versus": None, "snapshot": None})
    return table.assign(model=[f"m{number}" for number in range(len(holds))])


@pytest.mark.parametrize(
    ("holds", "verdict"),
    [
        ([YES, YES, NO], YES),
        ([YES, NO], OPEN),
        ([YES, OPEN, OPEN], OPEN),
        ([BARE_YES, BARE_YES, BARE_NO], YES),
        # One that chance was told from outweighs all that it was not.
        ([BARE_YES, BARE_YES, BARE_YES, NO], NO),
        ([BARE_YES, BARE_YES, "no"], "no"),
        ([BARE_NO, BARE_NO, OPEN], OPEN),
        ([BARE_YES, YES, NO, NO], NO),
    ],
)
def test_most_of_those_with_an_interval_decide(holds: list[str], verdict: str) -> None:
    assert across_networks(rows(*holds)).verdict == verdict


def test_it_is_said_how_many_have_no_interval() -> None:
    labels = {f"m{number}": f"M{number}" for number in range(5)}
    said = say_across(across_networks(rows(YES, BARE_YES, BARE_NO, OPEN, NO)), labels)
    assert said == "holds in 2 of 5 networks (M0, M1), open in 1; 2 without an interval"
    assert "interval" not in say_across(across_networks(rows(YES, NO)), labels)
