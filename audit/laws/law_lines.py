"""What the laws said of changed pairs, a line each: which broke, how far, and the constant behind it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.algebra.verdict import Verdict
from audit.comparisons import run_pairs
from audit.comparisons.run_pairs import Pairs
from audit.storage.store import Store

Pair = tuple[str, str, str]
"""Environment, older and newer release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """A law on one of the two releases of a pair."""

    pair: Pair
    tested: str
    """The release that may break what the other keeps."""
    behaviour: str
    laws: str
    """Name and digest of the reference set."""
    setting: str
    law: str
    ratio: float
    p: float
    broken: bool

    @property
    def told(self) -> str:
        where = "" if self.setting == "shipped" else f" at {self.setting}"
        return f"{self.law} broken{where}, ratio {self.ratio:.3g}, p {self.p:.1e}"


def lines(store: Store, run_id: str) -> dict[Pair, str]:
    """Of every changed pair of a run that is told of and was held against laws."""
    return _lines(store, run_pairs.told(store, run_id))


def line(store: Store, run_id: str, pair: Pair) -> str:
    """Of one pair of a run; empty where nothing changed or it was not held against laws."""
    return _lines(store, run_pairs.one(run_id, *pair)).get(pair, "")


def _lines(store: Store, pairs: Pairs) -> dict[Pair, str]:
    causes = _Causes.of(store)
    by_pair: dict[Pair, list[_Shown]] = {}
    for shown in _screenings(store, pairs):
        by_pair.setdefault(shown.pair, []).append(shown)
    found = {pair: _line(pair, shown, causes) for pair, shown in by_pair.items()}
    for pair, reason in _unheld(store, pairs):
        found[pair] = "; ".join(filter(None, (found.get(pair), f"not held against {reason}")))
    return found


def of_behaviours(store: Store, run_id: str, behaviours: Sequence[str]) -> dict[tuple[str, str], str]:
    """The same by the older and the newer behaviour, for every two that were held against each other, both ways."""
    rows = store.query(
        """
        SELECT reference_behaviour, tested_behaviour, laws || ' ' || laws_digest, setting, law, ratio, p, broken
        FROM internal.screenings JOIN internal.run_laws USING (laws_digest)
        WHERE run_id = $2
            AND reference_behaviour IN (SELECT unnest($1::VARCHAR[]))
            AND tested_behaviour IN (SELECT unnest($1::VARCHAR[]))
        ORDER BY laws, setting, law
        """,
        [list(behaviours), run_id],
    ).rows
    causes = _Causes.of(store) if rows else None
    by_ends: dict[tuple[str, str], list[_Shown]] = {}
    for reference, tested, *rest in rows:
        for ends in ((reference, tested), (tested, reference)):
            shown = _shown(
                ("", "the older", "the newer"), "the newer" if ends[1] == tested else "the older", tested, rest
            )
            by_ends.setdefault(ends, []).append(shown)
    return {ends: _line(shown[0].pair, shown, causes) for ends, shown in by_ends.items() if causes is not None}


def _line(pair: Pair, shown: Iterable[_Shown], causes: _Causes) -> str:
    rows = list(shown)
    parts = []
    for release in (pair[2], pair[1]):
        broken = _first_of_each_law(each for each in rows if each.tested == release and each.broken)
        if broken:
            told = "; ".join(each.told for each in broken)
            where = "" if release == pair[2] else f"in {release}: "
            cause = next(filter(None, map(causes.of_breaking, broken)), "")
            parts.append(": ".join(filter(None, (f"{where}{told}", cause))))
    if parts:
        return "; ".join(parts)
    kept = "neither breaks what the other keeps: " + ", ".join(dict.fromkeys(each.law for each in rows))
    return "; ".join([kept, *causes.that_differ(pair, rows)])


def _unheld(store: Store, pairs: Pairs) -> list[tuple[Pair, str]]:
    """Changed pairs of which a release could not be held against laws that are there, with the reason."""
    found = pairs.query(
        store,
        """
        , changed AS (
            SELECT *, unnest([older, newer]) || '/' || environment AS subject FROM pair WHERE verdict = 'changed'
        )
        SELECT DISTINCT changed.environment, changed.older, changed.newer, each.reason
        FROM changed JOIN internal.failures AS each USING (run_id, subject)
        WHERE each.stage = 'laws'
        ORDER BY ALL
        """,
    )
    return [((environment, older, newer), reason) for environment, older, newer, reason in found.rows]


def _first_of_each_law(broken: Iterable[_Shown]) -> list[_Shown]:
    """The one with the smallest p; as shipped, where that is as small as with the law resolved."""
    found: dict[str, _Shown] = {}
    for each in sorted(broken, key=lambda each: (each.p, each.setting != "shipped")):
        found.setdefault(each.law, each)
    return list(found.values())


def _screenings(store: Store, pairs: Pairs) -> list[_Shown]:
    found = pairs.query(
        store,
        """
        , both_ways AS (
            SELECT *, reference_behaviour AS older_behaviour, tested_behaviour AS newer_behaviour
            FROM internal.screenings
            UNION ALL
            SELECT *, tested_behaviour, reference_behaviour FROM internal.screenings
        )
        SELECT
            pair.environment, pair.older, pair.newer,
            CASE WHEN each.tested_behaviour = pair.newer_behaviour THEN pair.newer ELSE pair.older END,
            each.tested_behaviour, each.laws || ' ' || laws_digest, each.setting, each.law, each.ratio, each.p,
            each.broken
        FROM pair
        JOIN internal.run_laws USING (run_id)
        JOIN both_ways AS each USING (older_behaviour, newer_behaviour, laws_digest)
        WHERE pair.verdict = 'changed'
        ORDER BY pair.environment, each.laws, each.setting, each.law
        """,
    )
    return [
        _shown((environment, older, newer), tested, behaviour, rest)
        for environment, older, newer, tested, behaviour, *rest in found.rows
    ]


def _shown(pair: Pair, tested: str, behaviour: str, row: Sequence[Any]) -> _Shown:
    laws, setting, law, ratio, p, broken = row
    return _Shown(
        pair=pair,
        tested=tested,
        behaviour=behaviour,
        laws=laws,
        setting=setting,
        law=law,
        ratio=ratio,
        p=p,
        broken=broken,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Causes:
    """What attribution said."""

    explanations: dict[tuple[str, str, str], str]
    """By behaviour, reference set and law: the constants that leave least of it unexplained."""
    verdicts: dict[tuple[str, str, str], str]
    """By the same."""

    @classmethod
    def of(cls, store: Store) -> _Causes:
        """All that is known."""
        found = store.query(
            "SELECT behaviour, laws || ' ' || laws_digest, law, arg_min(explanation, residual)"
            " FROM internal.attributions WHERE verdict = ? GROUP BY ALL",
            [str(Verdict.PARAMETER_FAULT)],
        )
        rows = store.query("SELECT behaviour, laws || ' ' || laws_digest, law, verdict FROM internal.attributions").rows
        return cls(
            explanations={(behaviour, laws, law): told for behaviour, laws, law, told in found.rows},
            verdicts={(behaviour, laws, law): verdict for behaviour, laws, law, verdict in rows},
        )

    def of_breaking(self, shown: _Shown) -> str:
        """Why a release breaks a law; nothing where the law has no constants."""
        key = shown.behaviour, shown.laws, shown.law
        return self.explanations.get(key) or _SAID.get(self.verdicts.get(key, ""), "")

    def that_differ(self, pair: Pair, rows: Iterable[_Shown]) -> list[str]:
        """Constants of which both releases are wrong, each in its own way: neither keeps the law."""
        told: dict[tuple[str, str], dict[str, str]] = {}
        for each in rows:
            explanation = self.explanations.get((each.behaviour, each.laws, each.law))
            if explanation:
                told.setdefault((each.laws, each.law), {})[each.tested] = explanation
        return [
            f"{law}: in {pair[1]} {by[pair[1]]}, in {pair[2]} {by[pair[2]]}"
            for (_, law), by in told.items()
            if len(set(by.values())) == 2
        ]


_SAID = {
    str(Verdict.CONSISTENT): "its constants are as specified, so it is integrated otherwise",
    str(Verdict.NOT_EXPLICABLE): "no constant of the specification explains it",
}
