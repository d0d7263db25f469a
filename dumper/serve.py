"""One process serves all environments of one release: read the request, check the versions, answer cell by cell.

The answer to a cell is a file. Exit status, standard output and standard error carry nothing that is believed.
"""

import errno
import importlib
import json
import os
import re
import signal
import sys
import threading
import time
import traceback
import warnings
from importlib import metadata

from dumper import answers

PROTOCOL = 3


class WrongVersion(Exception):
    """The interpreter imported something else than the lock says."""


def serve(request_path):
    """Answer every cell of the request; return the exit status."""
    _die_with_the_parent()
    warnings.simplefilter("ignore")
    with open(request_path, encoding="utf-8") as file:
        request = json.load(file)
    if request["protocol"] != PROTOCOL:
        raise SystemExit("the request speaks protocol %r, this dumper %r" % (request["protocol"], PROTOCOL))
    owner = os.getpid()
    try:
        _import_release(request)
    except Exception as error:
        _end_if_forked(owner)
        answer = _failed(error)
        for cell in request["cells"]:
            answers.write(cell["answer"], cell["environment"], answer)
        return 1
    open(request["imported"], "wb").close()
    for cell in request["cells"]:
        began = time.perf_counter()
        answer = _answer(request, cell)
        _end_if_forked(owner)
        answer.meta["seconds"] = time.perf_counter() - began
        answers.write(cell["answer"], cell["environment"], answer)
    return 0


def _end_if_forked(owner):
    """A package may fork, and its child come back here: it has no say."""
    if os.getpid() != owner:
        os._exit(0)


def _die_with_the_parent():
    """End the whole process group when the orchestrator goes away, however it went.

    Standard input is a pipe that nobody writes to. It reaches its end when the orchestrator's side is closed.
    """
    lifeline = os.dup(0)
    os.set_inheritable(lifeline, False)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)

    def wait():
        while os.read(lifeline, 1):
            pass
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


def _import_release(request):
    """Import the package that registers the environments, after asserting that what is installed is what was asked."""
    for name, version in request["expect"].items():
        found = metadata.version(name)
        if _release_of(found) != _release_of(version):
            raise WrongVersion("%s %s is installed, %s was asked for" % (name, found, version))
    if request["api"] is not None:
        importlib.import_module(request["api"])
    _assert_imported(request)


def _assert_imported(request):
    """Assert that the modules that have been imported come from this virtualenv and say the version they should."""
    prefix = os.path.realpath(sys.prefix) + os.sep
    for name in {request["api"] or "numpy", *request["expect"]}:
        module = sys.modules.get(name.replace("-", "_"))
        origin = getattr(module, "__file__", None)
        if origin is not None and not os.path.realpath(origin).startswith(prefix):
            raise WrongVersion("%s was imported from %s, outside the virtualenv" % (name, origin))
        stated = getattr(module, "__version__", None)
        version = request["expect"].get(name)
        if isinstance(stated, str) and version is not None and _release_of(stated) != _release_of(version):
            raise WrongVersion("%s says it is %s, %s was asked for" % (name, stated, version))


def _release_of(version):
    """The numbers that a version begins with: 1.0, 1.0.0 and v1.0+cpu are the same release."""
    numbers = re.match(r"v?(\d+(?:\.\d+)*)", version)
    if numbers is None:
        return version
    return tuple(int(number) for number in re.sub(r"(\.0+)+$", "", numbers.group(1)).split("."))


def _answer(request, cell):
    from dumper import record, worlds

    try:
        return _TASKS[cell["task"]](request, cell)
    except worlds.Unavailable as error:
        return answers.Answer("unavailable", str(error))
    except record.Incomparable as error:
        return answers.Answer("incomparable", str(error))
    except record.NotReproduced as error:
        return answers.Answer("nondeterministic", str(error))
    except Exception as error:
        return _failed(error)


def _failed(error):
    """Tell of what is being handled, unless there was no room on a disk: that passes, and an answer would be kept."""
    cause, seen = error, set()
    while cause is not None and id(cause) not in seen:  # ``raise error from error`` is its own cause
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
            raise error
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return answers.Answer("failed", _last_line(error), detail=traceback.format_exc())


def _of_a_world(task):
    """A task that is asked of the cell's world, which is made for it."""

    def asked(request, cell):
        world = _make(cell)
        try:
            _assert_imported(request)
            return task(world, cell)
        finally:
            world.close()

    return asked


def _make(cell):
    from dumper import worlds

    return worlds.make(cell["kind"], cell["source"], cell["arguments"], cell["files"], cell["edits"])


def _probe(world, _):
    return answers.Answer("ok", "", meta={"layout": world.layout()})


def _bank(world, cell):
    from dumper import bank

    return bank.make(world, _read(cell))


def _dump(world, cell):
    from dumper import plant, record

    stimulus = _read(cell)
    edited = {"edits": cell["edits"]} if cell["edits"] else {}
    if not cell["plant"]:
        return record.record(world, stimulus, dict(world.description(), **edited))
    constant = cell["plant"]["name"] or plant.first_that_acts(world, stimulus)
    fresh = _make(cell)
    try:
        fresh.move(constant, cell["plant"]["factor"])
        return record.record(fresh, stimulus, dict(fresh.description(), planted=constant, **edited))
    finally:
        fresh.close()


def _anatomy(world, _):
    from dumper import anatomy

    return anatomy.answer(world)


def _stages(world, cell):
    from dumper import stages

    return stages.record(world, _read(cell))


def _registry(_, cell):
    from dumper import registry

    return registry.answer(cell["kind"])


def _read(cell):
    import numpy

    with numpy.load(cell["given"], allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


_TASKS = {
    "probe": _of_a_world(_probe),
    "bank": _of_a_world(_bank),
    "dump": _of_a_world(_dump),
    "anatomy": _of_a_world(_anatomy),
    "stages": _of_a_world(_stages),
    "registry": _registry,
}


def _last_line(error):
    text = str(error).strip().splitlines()
    return "%s: %s" % (type(error).__name__, text[-1] if text else "no message")
