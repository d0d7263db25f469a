"""Summaries as JSON: for programs. Keys are not removed or given another meaning while ``version`` stays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from audit.reports.summaries.value import AuditSummary
from audit.storage.records import Standing

VERSION = 1


def render(summaries: Sequence[AuditSummary]) -> str:
    """One document for all of them."""
    return json.dumps({"version": VERSION, "audits": [_one(each) for each in summaries]}, indent=1) + "\n"


def _one(summary: AuditSummary) -> dict[str, Any]:
    data = asdict(summary)
    changes = data.pop("changes")
    for standing in (Standing.NEW, Standing.WAIVED, Standing.KNOWN):
        data[standing] = [_without_standing(each) for each in changes if each["standing"] == standing]
    return {**data, "headline": summary.headline}


def _without_standing(change: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in change.items() if key != "standing"}
