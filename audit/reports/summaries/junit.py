"""Summaries as JUnit XML: a suite for each matrix, a case for each change, and for what could not be audited."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from audit.errors import EXIT_CHANGED, EXIT_COMPLETE
from audit.failures import readable
from audit.reports.summaries.value import AuditSummary
from audit.storage.records import Standing

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML document may hold, not even escaped."""

_Case = tuple[str, str, str, str]
"""Class, name, what it is (``failure``, ``error``, ``skipped`` or nothing), and why."""


def render(summaries: Sequence[AuditSummary]) -> str:
    """One document for all of them. A new change fails, an accepted one is skipped, an audit not completed errs."""
    root = ElementTree.Element("testsuites")
    for summary in summaries:
        cases = list(_cases(summary))
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=_clean(summary.title),
            tests=str(len(cases)),
            time=f"{summary.seconds:.3f}",
            failures=str(sum(kind == "failure" for _, _, kind, _ in cases)),
            errors=str(sum(kind == "error" for _, _, kind, _ in cases)),
            skipped=str(sum(kind == "skipped" for _, _, kind, _ in cases)),
        )
        for each in cases:
            _add(suite, each)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _cases(summary: AuditSummary) -> Iterator[_Case]:
    whole = "error" if summary.exit_code not in (EXIT_COMPLETE, EXIT_CHANGED) else ""
    yield summary.matrix, "audit", whole, summary.headline
    for each in summary.changes:
        kind = {Standing.NEW: "failure", Standing.WAIVED: "skipped"}.get(each.standing, "")
        why = f"{each.verdict}: {each.reason}" if each.standing is Standing.NEW else each.waiver or each.reason
        yield f"{summary.matrix}.{each.environment}", f"{each.older} → {each.newer}", kind, why
    for missing in summary.not_audited:
        yield f"{summary.matrix}.not-audited", missing.subject, "skipped", f"{missing.status}: {missing.reason}"


def _add(suite: ElementTree.Element, case: _Case) -> None:
    group, name, kind, why = map(_clean, case)
    element = ElementTree.SubElement(suite, "testcase", classname=group, name=name)
    if kind:
        ElementTree.SubElement(element, kind, message=why)


def _clean(text: str) -> str:
    return _NOT_XML.sub("", readable(text))
