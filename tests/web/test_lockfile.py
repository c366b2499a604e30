import errno
import fcntl
import multiprocessing
import os
from pathlib import Path

import pytest
import yaml

from tests.helpers.processes import full_disk
from tests.helpers.refusals import refusal
from vitscope.errors import VitscopeError
from vitscope.web.lockfile import Entry, find_lock_entry, record_digest

A = Entry("a" * 64, 10)
B = Entry("b" * 64, 20)


@pytest.fixture
def lock(tmp_path):
    return tmp_path / "new" / "paper.lock.yaml"


def test_what_is_recorded_is_known_and_plain_yaml(lock):
    record_digest(lock, "https://host/a", A)
    record_digest(lock, "https://host/b?c=1#d: e", B)
    # A digest of digits alone stays text.
    record_digest(lock, "https://host/digits", Entry("1" * 64, 1))
    assert find_lock_entry(lock, "https://host/a") == A
    assert find_lock_entry(lock, "https://host/b?c=1#d: e") == B
    assert find_lock_entry(lock, "https://host/digits") == Entry("1" * 64, 1)
    assert yaml.safe_load(lock.read_text())["https://host/a"] == {"sha256": "a" * 64, "bytes": 10}
    assert lock.read_text().startswith("# What the downloads of this study hashed to")
    assert list(lock.parent.iterdir()) == [lock]


def test_the_same_entry_twice_is_one_and_another_is_refused(lock):
    record_digest(lock, "https://host/a", A)
    before = lock.read_bytes()
    record_digest(lock, "https://host/a", A)
    with pytest.raises(VitscopeError, match=rf"SHA-256 b+ where {lock} says a+: it is changing"):
        record_digest(lock, "https://host/a", B)
    assert lock.read_bytes() == before


def test_entries_of_a_user_without_a_last_newline_stay(tmp_path):
    lock = tmp_path / "paper.lock.yaml"
    lock.write_text(f"https://host/a: {{sha256: {A.sha256}, bytes: 10}}")
    record_digest(lock, "https://host/b", B)
    assert (find_lock_entry(lock, "https://host/a"), find_lock_entry(lock, "https://host/b")) == (
        A,
        B,
    )


@pytest.mark.parametrize(
    "text",
    [
        *("{", "- a", "https://host/a: 1", "https://host/a: {sha256: b}", "a: {bytes: x}", "\xff"),
        *(f"https://host/a: {{sha256: b, bytes: {size}}}" for size in (".inf", "1e999", "9" * 30)),
        # A few hundred bytes that stand for millions of entries.
        "\n".join(
            ["a0: &a0 {x: {sha256: b, bytes: 1}}"]
            + [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 11)]
        ),
    ],
)
def test_a_damaged_lock_file_is_refused_and_left_alone(tmp_path, text):
    lock = tmp_path / "paper.lock.yaml"
    lock.write_bytes(text.encode("latin-1"))
    for attempt in (
        lambda: find_lock_entry(lock, "https://a"),
        lambda: record_digest(lock, "https://x", A),
    ):
        assert "paper.lock.yaml is damaged: restore it" in refusal(attempt)
    assert lock.read_bytes() == text.encode("latin-1")


def test_a_lock_file_that_cannot_be_opened_is_refused(tmp_path):
    with pytest.raises(VitscopeError, match=r"Cannot read .* \(Is a directory\): make it readable"):
        find_lock_entry(tmp_path, "https://host/a")
    with pytest.raises(VitscopeError, match="or give the study the sha256 of https://host/a"):
        record_digest(tmp_path, "https://host/a", A)


def test_where_nothing_can_be_locked_the_sentence_says_so(lock, monkeypatch):
    record_digest(lock, "https://host/a", A)

    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    for attempt in (
        lambda: find_lock_entry(lock, "https://host/a"),
        lambda: record_digest(lock, "b", A),
    ):
        with pytest.raises(VitscopeError, match=r"\(No locks available\): .* files can be locked"):
            attempt()


def test_a_full_disk_leaves_the_older_entries(lock):
    record_digest(lock, "https://host/a", A)
    before = lock.read_bytes()
    with full_disk(len(before) + 20):
        assert "Cannot write" in refusal(record_digest, lock, "https://host/b", B)
    assert lock.read_bytes() == before


def _record_many(lock: Path, worker: int) -> None:
    for index in range(8):
        record_digest(lock, f"https://host/shared/{index}", A)
        record_digest(lock, f"https://host/{worker}/{index}", Entry(f"{worker:064x}", index))


@pytest.mark.nightly
def test_processes_that_write_at_once_lose_nothing(lock):
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_record_many, args=(lock, n)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    keys = [line for line in lock.read_text().splitlines() if line.startswith("https:")]
    assert len(keys) == len(set(keys)) == 8 + 4 * 8
    assert find_lock_entry(lock, "https://host/3/7") == Entry(f"{3:064x}", 7)
    assert list(lock.parent.iterdir()) == [lock]
