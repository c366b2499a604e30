"""Claims of a user's own: what `CLAIMS` of a file says, counted as the paper's are."""

from collections.abc import Mapping
from pathlib import Path

from vitscope.claims.claim import Claim, Evidence, in_order
from vitscope.errors import VitscopeError
from vitscope.networks.building.own_code import OwnCode, running, shown


def read_claims(runs: Mapping[str, str], table: str) -> Evidence:
    """Return the claims of a file, which are counted on the table of its measure."""
    file = Path(runs["file"])
    with running(OwnCode(file, runs["module"]), "CLAIMS") as own:
        claims = tuple(own.CLAIMS)
        if not all(isinstance(each, Claim) for each in claims):
            raise VitscopeError(
                f"{shown(file)}: CLAIMS: found something else than claims, allowed: a tuple of "
                f"vitscope.claims.claim.Claim."
            )
        return Evidence(table, claims, in_order)
