"""Files that somebody named to be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from audit import named_files
from audit.errors import UsageError
from audit.named_files import STANDARD_OUTPUT


def test_a_missing_folder_is_made_when_it_is_needed_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "one" / "two" / "file"
    named_files.check(path)
    assert list(tmp_path.iterdir()) == []
    named_files.put(path, "text\n")
    assert path.read_text() == "text\n"
    named_files.put(path, "other\n")
    assert path.read_text() == "other\n"
    assert list(path.parent.iterdir()) == [path], "nothing temporary is left"


def test_a_name_without_a_folder_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    named_files.put(Path("file"), "text")
    assert (tmp_path / "file").read_text() == "text"


def test_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    named_files.put(STANDARD_OUTPUT, "text\n")
    assert capsys.readouterr().out == "text\n"


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "below", tmp_path / "file" / "far" / "below"):
        with pytest.raises(UsageError, match=f"{path} cannot be written: {tmp_path / 'file'} is not a folder"):
            named_files.put(path, "")


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_not_ours(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="permission denied"):
        named_files.check(tmp_path / "file")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    named_files.put(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "text"


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        named_files.put(tmp_path / "pipe", "text")
        assert os.read(reader, 100) == b"text"
        assert (tmp_path / "pipe").is_fifo()
    finally:
        os.close(reader)
