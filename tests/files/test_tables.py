import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.helpers.refusals import refusal
from vitscope.errors import VitscopeError
from vitscope.files.tables import (
    PARTS,
    Table,
    has_table_part,
    read_metadata,
    read_table_part,
    read_warnings,
    warning_metadata,
    write_csv,
    write_table_parts,
)
from vitscope.jobs.tables import find_table, tables
from vitscope.package_data import ROOT

NAME = "variance_per_image"
TABLE = find_table(NAME)
FRAME = pd.DataFrame({"index": [0, 1], "image": [7, 8], "variance": [0.5, np.nan]})


def test_csv_keeps_all_digits_and_lists(tmp_path: Path) -> None:
    frame = FRAME.assign(
        name=["a, b", None],
        values=[np.array([0.1, -2.0]), np.array([1 / 3])],
        picture=[b"\x00", b"ab"],
        counted=pd.Series([1, None], dtype="Int32"),
    )
    write_csv(frame, tmp_path / "table.csv")
    back = pd.read_csv(tmp_path / "table.csv")
    pd.testing.assert_frame_equal(back[[*FRAME]], FRAME, check_exact=True)
    assert [json.loads(cell) for cell in back["values"]] == [[0.1, -2.0], [1 / 3]]
    assert back["picture"].tolist() == ["AA==", "YWI="]
    assert back["name"].tolist() == ["a, b", np.nan]
    assert "\r" not in (tmp_path / "table.csv").read_bytes().decode()


def test_no_text_is_a_formula_of_a_spreadsheet(tmp_path: Path) -> None:
    names = ["=cmd|'/c calc'!A0", "+1", "-1", "@SUM(1)", "\t=1", "a=b"]
    write_csv(pd.DataFrame({"name": names, "value": -1.5}), tmp_path / "table.csv")
    back = pd.read_csv(tmp_path / "table.csv")
    assert back["name"].tolist() == [f"'{name}" for name in names[:-1]] + ["a=b"]
    assert back["value"].tolist() == [-1.5] * 6


@pytest.mark.parametrize("name", tables())
def test_every_table_comes_back(tmp_path: Path, name: str) -> None:
    samples = {
        "string": ["a", "b"],
        "int32": [1, 2],
        "int64": [1, 2**40],
        "float32": [0.5, -(2.0**100)],
        "float64": [0.1, -1e300],
        "bool": [True, False],
        "list of float64": [np.array([0.1]), np.array([1e300, -2.0])],
        "list of float32": [np.array([0.5], np.float32), np.array([1.0, -2.0], np.float32)],
        "list of bool": [np.array([True]), np.array([False, True])],
        "binary": [b"", b"\x00\xff"],
        "list of int32": [np.array([], np.int32), np.array([7, -2], np.int32)],
    }
    table = find_table(name)
    frame = pd.DataFrame({column: samples[kind] for column, (kind, _) in table.columns.items()})
    table.write(frame[frame.columns[::-1]], tmp_path / "table")
    back = table.read(tmp_path / "table")
    pd.testing.assert_frame_equal(back, frame, check_dtype=False, check_exact=True)
    schema = pq.read_schema(tmp_path / "table")
    assert schema.remove_metadata() == table.schema
    # What each column is stands in the file, and on the page of tables in the same words.
    page = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8").replace("\\|", "|")
    for field in schema:
        sentence = field.metadata[b"description"].decode()
        assert sentence[-1] not in ". "
        type_name, _ = table.columns[field.name]
        assert f"| `{field.name}` | {type_name} | {sentence} |" in page


def test_missing_values_and_metadata_come_back(tmp_path: Path) -> None:
    path = tmp_path / "table"
    TABLE.write(FRAME, path, {"checkpoint_sha256": "ab", "table": "another"})
    assert TABLE.read(path)["variance"].isna().tolist() == [False, True]
    assert pq.read_table(path)["variance"].null_count == 1
    assert read_metadata(path) == {"checkpoint_sha256": "ab", "table": NAME}
    pd.testing.assert_frame_equal(pd.read_parquet(path), TABLE.read(path))


def test_warnings_of_several_tables(tmp_path: Path) -> None:
    given = {"one": ["a", "b"], "other": ["b", "c"], "sound": []}
    for name, warnings in given.items():
        TABLE.write(FRAME, tmp_path / name, warning_metadata(warnings))
    assert read_warnings(tmp_path / name for name in given) == ["a", "b", "c"]
    assert "warnings" not in read_metadata(tmp_path / "sound")


def test_the_folder_changes_nothing(tmp_path: Path) -> None:
    paths = [tmp_path / name / "table.parquet" for name in ("study", "study=7")]
    for path in paths:
        TABLE.write(FRAME, path, {"x": "y"})
        assert TABLE.read(path).columns.tolist() == list(FRAME)
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("frame", [FRAME.drop(columns="image"), FRAME.assign(more=1)])
def test_other_columns_are_a_mistake_of_the_code(tmp_path: Path, frame: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match=NAME):
        TABLE.write(frame, tmp_path / "table")
    assert list(tmp_path.iterdir()) == []


def test_numbers_that_do_not_fit_are_a_mistake_of_the_code(tmp_path: Path) -> None:
    for frame in (FRAME.assign(index=2**40), FRAME.assign(image=0.5)):
        with pytest.raises(pa.ArrowInvalid):
            TABLE.write(frame, tmp_path / "table")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("read", [TABLE.read, read_metadata])
def test_a_file_that_is_missing_or_no_table(tmp_path: Path, read) -> None:
    path = tmp_path / "table"
    assert refusal(read, path) == f"Cannot read the table {path}: No such file or directory."

    TABLE.write(FRAME, tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    for content in (b"", b"<html></html>", whole[:-1], whole[: len(whole) // 2]):
        path.write_bytes(content)
        said = f"{path} is not a readable parquet table: delete it and run again."
        assert refusal(read, path) == said


def flip_bits(path: Path, step: int = 1) -> Iterator[None]:
    """Change one bit of a file in each turn: in every byte, or in some, `step` bytes apart."""
    whole = path.read_bytes()
    for place in range(0, len(whole), step):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        yield


def test_a_bit_of_every_byte_that_changes_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "table"
    TABLE.write(FRAME, path, {"data_sha256": "ab"})
    for _ in flip_bits(path):
        for read in (TABLE.read, read_metadata):
            said = refusal(read, path)
            assert said.startswith(str(path))
            assert said.endswith("delete it and run again.")


ONE, OTHER = (Table(name, {"value": ("int64", "a number")}) for name in ("one_row", "other_row"))


def test_a_part_is_found_among_those_of_other_measures(tmp_path: Path) -> None:
    path, rows = tmp_path / "pass.parquet", pd.DataFrame({"value": [1, 2]})
    assert not has_table_part(path, "one")
    file = ONE.to_bytes(rows, {"data_sha256": "ab"})
    write_table_parts({"other": OTHER.to_bytes(rows + 2), "one": file}, path)
    assert has_table_part(path, "one")
    assert not has_table_part(path, "another")
    found, facts = read_table_part(ONE, path, "one")
    assert found["value"].tolist() == [1, 2]
    assert facts == {"data_sha256": "ab", "table": "one_row"}
    # Others read all of it.
    assert PARTS.read(path)["measure"].tolist() == ["other", "one"]
    with pytest.raises(VitscopeError, match=r"pass.parquet has no part of another: delete it and"):
        read_table_part(ONE, path, "another")
    with pytest.raises(VitscopeError, match=r"pass.parquet is not a one_row table of this version"):
        read_table_part(ONE, path, "other")
    write_table_parts({"one": file.replace(b"one", b"onE", 1)}, path)
    with pytest.raises(VitscopeError, match=r"pass.parquet is damaged"):
        read_table_part(ONE, path, "one")


def test_no_bit_that_changes_gives_another_part(tmp_path: Path) -> None:
    """The seal of the whole file is not read, so the part has to tell by itself."""
    path, rows = tmp_path / "pass.parquet", pd.DataFrame({"value": [1, 2]})
    write_table_parts(
        {"other": OTHER.to_bytes(rows + 2), "one": ONE.to_bytes(rows, {"a": "b"})}, path
    )
    said: list[str] = []
    for _ in flip_bits(path, 3):
        try:
            found, facts = read_table_part(ONE, path, "one")
        except VitscopeError as error:
            said.append(str(error))
        else:
            assert (found["value"].tolist(), facts) == ([1, 2], {"a": "b", "table": "one_row"})
    assert path.stat().st_size / 3 > len(said) > len(ONE.to_bytes(rows, {"a": "b"})) / 3
    assert all(each.startswith(str(path)) for each in said)
    assert all(each.endswith("delete it and run again.") for each in said)


def test_a_table_of_another_writer_is_read(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(FRAME, schema=TABLE.schema, preserve_index=False)
    pq.write_table(table, tmp_path / "table")
    TABLE.write(FRAME, tmp_path / "ours")
    pd.testing.assert_frame_equal(TABLE.read(tmp_path / "table"), TABLE.read(tmp_path / "ours"))


def test_a_table_of_another_kind_or_without_its_seal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table"
    TABLE.write(FRAME, path)
    assert refusal(find_table("blocks").read, path) == (
        f"{path} is not a blocks table of this version: delete it and run again."
    )
    content = path.read_bytes()
    start = content.rindex(b"vitscope", 0, -8)
    path.write_bytes(content[:start] + bytes(12) + content[start + 12 :])
    with pytest.raises(VitscopeError, match="is damaged: it is not what was written; delete it"):
        TABLE.read(path)
