"""Which variables reach uv, and which of their values are told to nobody.

A package may write ``${NAME}`` into an address among its metadata. Uv fills in the variable of that name, whatever it
is, and says the address when it fails: so it gets those that it reads itself and no others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

_READ = re.compile(
    r"UV_.*|XDG_.*|LC_.*|PYX_.*|CONDA_PREFIX|CONDA_DEFAULT_ENV|_CONDA_ROOT|"
    r"PATH|HOME|USER|LOGNAME|TMPDIR|LANG|TZ|LD_LIBRARY_PATH|PYENV_ROOT|MACOSX_DEPLOYMENT_TARGET|RUST_MIN_STACK|"
    r"SSL_CERT_FILE|SSL_CERT_DIR|SSL_CLIENT_CERT|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|HTTP_TIMEOUT|"
    r"NETRC|HF_TOKEN|DBUS_SESSION_BUS_ADDRESS|PYTHON_KEYRING_BACKEND|"
    r"(?i:HTTP_PROXY|HTTPS_PROXY|ALL_PROXY|NO_PROXY)"
)
_NOT_FOR_THIS = re.compile(r"UV_PYTHON|UV_COMPILE_BYTECODE|UV_PUBLISH_.*|UV_GITHUB_TOKEN")
"""What is asked for here says which Python; compiling would start it with what is installed; nothing is published."""

_STORES = {"UV_S3_ENDPOINT_URL": "AWS_", "UV_GCS_ENDPOINT_URL": "GOOGLE_", "UV_AZURE_ENDPOINT_URL": "AZURE_"}
"""Indexes for which uv signs its requests, and how the variables begin that it signs them with."""

_CREDENTIAL = re.compile(r"PASSWORD|USERNAME|TOKEN|SECRET|KEY$|KEY_ID$|CONNECTION_STRING$")
_USER_INFO = re.compile(r"(?<=://)[^/\s\"]*@")  # up to the last @: a password may hold one, and an apostrophe
_OF_PROXY = re.compile(r"(?<=-proxy)([\"']?\s*=\s*[\"'])[^/\s\"]*@")  # in settings: its address needs no scheme

SHORTEST_SECRET = 4
"""Characters. A shorter one protects nothing, and would be found in half of the words that uv says."""


def handed_on() -> dict[str, str]:
    """The variables of this process that uv gets."""
    stores = tuple(begin for name, begin in _STORES.items() if name in os.environ)
    return {name: value for name, value in os.environ.items() if _is_read(name) or name.startswith(stores)}


def _is_read(name: str) -> bool:
    return bool(_READ.fullmatch(name)) and not _NOT_FOR_THIS.fullmatch(name)


def redacted(text: str) -> str:
    """A text without the user and password of an address."""
    return _USER_INFO.sub("", _OF_PROXY.sub(r"\1", text))


def secrets(variables: Mapping[str, str]) -> tuple[str, ...]:
    """The credentials that are among variables, the longest first."""
    return tuple(sorted(set(_secrets(variables)), key=len, reverse=True))


def without(secrets: Sequence[str], text: str) -> str:
    """A text without credentials, also where they were made part of an address."""
    return re.sub("|".join(map(_shape, secrets)), "***", text, flags=re.I) if secrets else text


def _secrets(variables: Mapping[str, str]) -> Iterator[str]:
    for name, value in variables.items():
        found = [value.strip()] if _CREDENTIAL.search(name) else []
        is_bare = name.lower().endswith("_proxy") and "://" not in value  # its address needs no scheme
        for user in _USER_INFO.findall(f"://{value}" if is_bare else value):
            found += [user[:-1], *user[:-1].split(":", 1)]
        yield from (each for each in found if len(each) >= SHORTEST_SECRET)


def _shape(secret: str) -> str:
    """A pattern for it as it is, and with any of its characters written as in an address."""
    return "".join(f"(?:{re.escape(each)}|{re.escape(quote(each, safe=''))})" for each in secret)
