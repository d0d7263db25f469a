"""What a node lacks is installed, or told in one sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from audit.cluster import outfitting


def test_an_index_that_hangs_is_told(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an error of the system like others, for which the node is not used and not asked again."""
    hanging = tmp_path / "python"
    hanging.write_text("#!/bin/sh\nexec sleep 600\n", encoding="ascii")
    hanging.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(hanging))
    monkeypatch.setattr(outfitting, "IMPORTED", ("of_no_distribution",))
    monkeypatch.setattr(outfitting, "_INSTALL_SECONDS", 1.0)
    with pytest.raises(outfitting.NotOutfitted, match=r"of_no_distribution.* installed: pip was not done within 1 s"):
        outfitting.outfit(["of_no_distribution"], own_cache)
    assert list((own_cache / "harness").iterdir()) == []
