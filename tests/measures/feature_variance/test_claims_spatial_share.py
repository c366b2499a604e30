"""Claims about the share of the variance within images, counted by hand."""

from tests.helpers.claims import count, in_favour, variances

TABLE_ = variances("m", ["stem", "msa", "mlp", "msa", "mlp"], [8] * 5, [0.8, 0.7, 0.9, 0.6, 0.5])
TABLE_ = TABLE_.rename(columns={"variance": "share"})
TABLES = {"spatial_share": TABLE_, "blocks": TABLE_}
EXAMPLES = {"spatial_share": TABLES, "variance_and_share": TABLES}


def test_by_hand() -> None:
    claims = count("spatial_share", TABLES, ["m"])
    found = {row["claim"]: row["measured_value"] for row in claims.to_dict("records")}
    assert found == {"msa_reduces_share": 1, "mlp_increases_share": 0.5}
    assert in_favour(claims.iloc[0])
