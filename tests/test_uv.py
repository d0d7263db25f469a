"""The real uv, and what it says when it fails."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from audit.errors import IndexUnreachable, ToolMissing
from audit.failures import Failure, Status, printable, readable
from audit.installing import uv, uv_variables
from audit.installing.uv import Answer
from tests import wheels

NOWHERE = "http://127.0.0.1:9/simple"  # the discard port: nothing listens there


def failed(errors: str) -> Answer:
    return Answer(ok=False, output="", errors=errors, exit_code=1)


def compiled(requirement: str, *options: str) -> Answer:
    return uv.call("pip", "compile", "-", "--no-header", *options, given=requirement + "\n")


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", NOWHERE)
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_NO_CACHE", "1")


def test_an_answer() -> None:
    answer = compiled("six==1.16.0", "--no-annotate")
    assert (answer.ok, answer.exit_code, answer.output) == (True, 0, "six==1.16.0\n")
    assert not answer.unreachable
    uv.require_index(answer)


def test_the_reason_of_an_impossible_requirement_is_the_resolvers_sentence() -> None:
    answer = compiled("six==99.0")
    assert not answer.ok
    assert answer.exit_code != 0
    assert "six==99.0" in answer.reason
    assert "unsatisfiable" in answer.reason
    assert "\n" not in answer.reason
    assert not answer.reason.startswith("error")
    assert not answer.unreachable
    uv.require_index(answer)  # the index did answer


def test_the_reason_of_requirements_that_contradict() -> None:
    answer = compiled("python-dateutil==2.9.0\nsix<1.5")
    assert not answer.ok
    assert "python-dateutil" in answer.reason
    assert "six" in answer.reason


def test_the_reason_of_a_package_that_is_not_there() -> None:
    answer = compiled("no-such-package-of-release-audit")
    assert "no-such-package-of-release-audit" in answer.reason
    assert not answer.unreachable


@pytest.mark.parametrize(
    "fails",
    [
        "sys.exit('error: the moon is in the wrong phase')",
        "sys.exit('the moon is in the wrong phase')",
        "raise RuntimeError('the moon is in the wrong phase')",
        "print('moon.c: error: the moon is in the wrong phase', file=sys.stderr); raise OSError('it is the compiler')",
    ],
)
def test_the_reason_of_a_source_that_does_not_build_is_the_builds_own_error(tmp_path: Path, fails: str) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
    )
    (tmp_path / "backend.py").write_text(f"import sys\nprint('reading the spell book', file=sys.stderr)\n{fails}\n")
    answer = compiled(f"broken @ {tmp_path.as_uri()}")
    assert not answer.ok
    assert answer.reason.endswith("the moon is in the wrong phase")
    assert "Failed to build" in answer.reason
    assert "spell book" not in answer.reason
    assert "hint" not in answer.reason
    assert not answer.unreachable


def test_a_call_that_uv_does_not_understand_has_a_reason() -> None:
    answer = uv.call("pip", "conjure")
    assert not answer.ok
    assert "conjure" in answer.reason


@pytest.mark.usefixtures("away")
def test_an_index_that_does_not_answer_is_unreachable() -> None:
    answer = compiled("six==1.16.0")
    assert answer.unreachable
    assert "127.0.0.1:9" in answer.reason
    with pytest.raises(IndexUnreachable, match=r"cannot be reached: .*Check the network"):
        uv.require_index(answer)
    failure = answer.failure("r", "resolve", Status.UNRESOLVED, 0.5)
    assert (failure.status, failure.is_infrastructure) == ("unreachable", True)


def test_a_name_that_does_not_resolve_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_NO_CACHE", "1")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert compiled("six==1.16.0").unreachable


def test_a_network_that_is_switched_off_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says nothing about the package: the same audit with the network on would go on."""
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_NO_CACHE", "1")
    assert compiled("six==1.16.0").unreachable


def test_success_is_never_unreachable_whatever_was_printed() -> None:
    errors = "warning: Failed to fetch something\nNo space left on device"
    answer = Answer(ok=True, output="", errors=errors, exit_code=0)
    assert not answer.unreachable
    assert not answer.full_disk


def test_reasons_from_texts() -> None:
    assert failed("error: one\n  cause: two\n         and more\n  cause: three\n").reason == "one: two and more: three"
    assert failed("").reason == "uv ended with exit code 1 and said nothing"
    assert failed("something\n  else\n").reason == "something else"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("said", ["Failed to fetch a model", "No space left on device", "No solution found"])
def test_what_a_build_says_is_not_what_uv_says(stream: str, said: str) -> None:
    """Else a package could pass off its own failure as the machine's."""
    errors = f"error: Failed to build `x==1.0`\n  cause: The build backend returned an error\n\n[{stream}]\n{said}\n"
    answer = Answer(ok=False, output="", errors=errors, exit_code=1)
    assert (answer.unreachable, answer.full_disk, answer.unsatisfiable) == (False, False, False)
    assert answer.failure("r", "build", Status.UNBUILT, 0.0).status == "unbuilt"


@pytest.mark.parametrize(
    "said", ["dns error", "Failed to fetch x", "No space left on device (os error 28)", "x\n  cause: tcp connect error"]
)
def test_what_a_wheel_writes_among_its_metadata_is_not_what_uv_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """Uv shows what it cannot parse, and is asked by every audit again where the machine is at fault."""
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    wheels.write(tmp_path, "liar", "1.0", {"liar.py": ""}, (said,))
    failure = compiled("liar==1.0").failure("r", "resolve", Status.UNRESOLVED, 0.0)
    assert said.rpartition(" ")[2] in failure.stderr_tail
    assert failure.status == "unresolved"


def test_a_full_disk_is_the_machines_fault() -> None:
    answer = failed("error: failed to write\n  cause: No space left on device (os error 28)\n")
    assert answer.full_disk
    failure = answer.failure("r", "build", Status.UNBUILT, 1.5)
    assert failure == Failure(
        subject="r",
        stage="build",
        status=Status.DISK_FULL,
        reason="failed to write: No space left on device (os error 28)",
        exit_code=1,
        stderr_tail=answer.errors,
        seconds=1.5,
    )
    assert failure.is_infrastructure


def test_what_a_package_prints_cannot_move_the_cursor() -> None:
    assert readable("\x1b[2J\x1b[31mred\x1b[0m\x07\r\nnext\ttab\x00") == "red\nnext\ttab"
    assert readable("x" * 5000) == "x" * 4000
    assert readable("abc", limit=2) == "bc"
    assert readable("\x1b]0;title\x07text").endswith("text")
    assert readable("one\u061c\u200f\u2067two") == "onetwo"


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("::error::owned", 4000),
        ("fine\n \t\u00a0::add-mask::a", 4000),
        ("\x1b[0m::stop-commands::a", 4000),
        ("it said::error::owned", 14),
    ],
)
def test_what_a_package_prints_is_no_command_where_a_line_begins(text: str, limit: int) -> None:
    shown = readable(text, limit)
    assert not [line for line in shown.splitlines() if line.lstrip().startswith("::")]
    assert readable(shown) == shown


@pytest.mark.parametrize("text", ["see ##[error]owned", "##vso[task.setvariable]a", "##teamcity[a]"])
def test_what_a_package_prints_is_no_command_anywhere(text: str) -> None:
    assert not re.search(r"##\w*\[", printable(text))
    assert printable(text).replace("\u200b", "") == text


@pytest.mark.parametrize("text", ["std::vector<int> and std::\nsort", "a\n: b", "## heading", "a[1:2, ::3]", "#[x]"])
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    assert printable(text) == text


def test_the_users_virtualenv_does_not_decide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    monkeypatch.setenv("UV_PYTHON", "2.7")
    assert compiled("six==1.16.0", "--no-annotate").output == "six==1.16.0\n"
    assert os.environ["UV_PYTHON"] == "2.7"


ADDRESS = "x @ http://127.0.0.1:9/%s/x-1.0-py3-none-any.whl"


def test_a_package_does_not_choose_a_variable_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uv fills in variables in an address, also where a package wrote it."""
    monkeypatch.setenv("CLOUD_TOKEN", "s3cret")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    wheels.write(tmp_path, "leaky", "1.0", {"leaky.py": ""}, (ADDRESS % "${CLOUD_TOKEN}",))
    answer = compiled("leaky==1.0")
    assert "CLOUD_TOKEN" in answer.reason
    assert "s3cret" not in answer.reason + answer.errors


@pytest.mark.parametrize(
    ("name", "value", "address"),
    [
        ("UV_INDEX_PRIVATE_PASSWORD", "s3cret and {more}", ADDRESS),
        ("UV_INDEX_PRIVATE_USERNAME", "s3cret", ADDRESS),
        ("UV_DEFAULT_INDEX", "https://s3cret@host/simple", ADDRESS),
        ("UV_INDEX", "private=https://me:s3cret@host/simple", "x @ %s/x.whl"),
    ],
)
def test_credentials_that_uv_gets_are_not_in_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, address: str
) -> None:
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("UV_OFFLINE", "1")
    wheels.write(tmp_path, "leaky", "1.0", {"leaky.py": ""}, (address % f"${{{name}}}",))
    failure = compiled("leaky==1.0").failure("r", "resolve", Status.UNRESOLVED, 0.0)
    assert "***" in failure.stderr_tail
    assert "s3cret" not in failure.reason + failure.stderr_tail


def test_a_credential_that_is_one_of_uvs_own_words_does_not_hide_what_uv_says() -> None:
    answer = replace(failed("error: Failed to fetch: `https://fetch@host`\n"), secrets=("fetch",))
    assert answer.unreachable
    assert answer.reason == "Failed to ***: `https://***@host`"


def test_uv_gets_what_it_reads_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    given = "PATH", "HOME", "UV_INDEX", "UV_INDEX_A_PASSWORD", "https_proxy", "SSL_CERT_FILE", "NETRC", "LC_ALL"
    kept = "UV_PUBLISH_TOKEN", "UV_COMPILE_BYTECODE", "UV_PYTHON", "VIRTUAL_ENV", "RUST_LOG", "GITHUB_TOKEN", "PATHS"
    for name in (*given, *kept, "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "1")
    found = uv_variables.handed_on()
    assert set(given) <= set(found)
    assert not {*kept, "AWS_SECRET_ACCESS_KEY"} & set(found)
    monkeypatch.setenv("UV_S3_ENDPOINT_URL", "https://host")
    assert "AWS_SECRET_ACCESS_KEY" in uv_variables.handed_on(), "uv signs with it"


def test_what_is_hidden_of_a_text() -> None:
    variables = {"UV_INDEX_A_PASSWORD": "p@ss w0rd\n", "UV_KEYRING_PROVIDER": "subprocess", "UV_INDEX_A_USERNAME": "me"}
    text = "some p@ss w0rd, P%40SS%20W0RD and a subprocess"
    assert uv_variables.without(uv_variables.secrets(variables), text) == "some ***, *** and a subprocess"
    assert uv_variables.without((), text) == text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AZURE_STORAGE_CONNECTION_STRING", "AccountName=me;AccountKey=s3cret=="),
        ("https_proxy", "me:s3cret@host:3128"),
        ("HTTP_PROXY", "s3cret@host:3128"),
        ("ALL_PROXY", "socks5://me:s3cret@host:1080"),
    ],
)
def test_what_gives_access_is_hidden_whatever_it_is_called(name: str, value: str) -> None:
    shown = uv_variables.without(uv_variables.secrets({name: value}), f"x @ http://127.0.0.1:9/{value}/x.whl")
    assert ("***" in shown, "s3cret" in shown) == (True, False)


@pytest.mark.parametrize("said", ["dns error", "No space left on device (os error 28)"])
def test_a_reason_for_which_a_version_is_yanked_is_no_sentence_of_uvs(said: str) -> None:
    answer = failed(
        "error: No solution found when resolving dependencies\n"
        f"  cause: Because x==1.0 was yanked (reason: oops\n         cause: {said}) and you require x==1.0, we can\n"
    )
    assert (answer.unreachable, answer.full_disk, answer.unsatisfiable) == (False, False, True)


@pytest.mark.parametrize(
    "cause",
    [
        "Failed to download distribution due to network timeout. Try increasing UV_HTTP_TIMEOUT",
        "error decoding response body",
        "request or response body error",
    ],
)
def test_a_file_that_breaks_off_is_the_indexs_fault_and_not_that_of_who_is_offline(cause: str) -> None:
    answer = failed(f"error: Failed to download `x==1.0`\n  cause: {cause}\n")
    assert answer.unreachable
    assert not replace(answer, offline=True).unreachable


def test_the_version_is_a_version() -> None:
    assert [int(part) for part in uv.version().split(".")] >= [0, 9]


def test_uv_is_found_beside_the_interpreter_or_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match="uv is not installed"):
        uv.executable()
    on_path = tmp_path / "uv"
    on_path.write_text("#!/bin/sh\n")
    on_path.chmod(0o755)
    assert uv.executable() == on_path
    beside = tmp_path / "bin" / "uv"
    beside.write_text("#!/bin/sh\n")
    assert uv.executable() == beside


def test_settings_that_decide_what_is_found_are_part_of_the_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = uv.settings_digest()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    assert uv.settings_digest() == plain, "what is not said to uv decides nothing"
    (tmp_path / "pyproject.toml").write_text('[tool.uv]\nfind-links = ["a"]\n')
    said = uv.settings_digest()
    monkeypatch.setenv("UV_FIND_LINKS", "b")
    monkeypatch.setenv("UV_HTTP_TIMEOUT", "30")
    assert len({plain, said, uv.settings_digest()}) == 3
    monkeypatch.delenv("UV_FIND_LINKS")
    assert uv.settings_digest() == said, "how long to wait decides nothing"
