"""The store made for measurements is one that the program could have written."""

from __future__ import annotations

from pathlib import Path

from audit.storage.store import Store
from tests import synthetic_store
from tests.synthetic_store import Size


def test_every_pair_of_a_synthetic_store_has_a_verdict_and_evidence(tmp_path: Path) -> None:
    path = tmp_path / "audit.duckdb"
    synthetic_store.make(path, Size(releases=30, environments=3, behaviours=5))
    with Store(path, read_only=True) as store:
        pairs, judged, verdicts = store.query(
            "SELECT count(*), count(verdict), count(DISTINCT verdict) FROM pairs"
        ).rows[0]
        assert pairs == judged == 3 * 30 * 29 / 2
        assert verdicts >= 4
        assert store.query("SELECT count(*) FROM certificates").rows[0][0] > 0
        missing = store.query("SELECT count(*) FROM dumps WHERE behaviour IS NULL").rows[0][0]
        assert missing == store.query("SELECT count(*) FROM failures").rows[0][0]


def test_the_same_size_makes_the_same_rows(tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        synthetic_store.make(tmp_path / f"{name}.duckdb", Size(releases=12, environments=2, behaviours=4))
        with Store(tmp_path / f"{name}.duckdb", read_only=True) as store:
            found.append(store.query("SELECT * FROM pairs ORDER BY environment, older_position, newer_position").rows)
    assert found[0] == found[1] != ()
