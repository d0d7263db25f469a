"""Edit the file of a MuJoCo model before it is compiled: ``body[@name='fingertip']@pos``.

Much of a model is computed when it is compiled (inertias, ranges, what may collide), so that a number in the compiled
model cannot simply be set otherwise. Whoever makes an environment calls the bindings to compile its file. While it is
being made, what is compiled is a copy of that file in which the attribute has another value. Files that it includes are
found as before, and are not edited.
"""

import importlib
import os
import shutil
import tempfile
from contextlib import contextmanager
from xml.etree import ElementTree

from dumper.worlds import Unavailable

_FOLDERS_ABOVE = 3  # from which a model may take its meshes and what it includes


@contextmanager
def edited(edits):
    """Compile every model with these edits (values by ``PATH@ATTRIBUTE``); each must find something to edit."""
    model_class = _model_class(next(iter(edits)))
    from_path, from_text = model_class.from_xml_path, model_class.from_xml_string
    missed = set(edits)

    def compile_path(filename, *more, **keywords):
        with open(filename, "rb") as file:
            text = _rewritten(file.read(), edits, missed)
        folder = tempfile.mkdtemp()
        try:
            return _compiled(from_path, _beside(filename, text, folder), more, keywords)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def compile_text(xml, *more, **keywords):
        return _compiled(from_text, _rewritten(xml, edits, missed).decode("ascii"), more, keywords)

    with _replaced(model_class, "from_xml_path", compile_path), _replaced(model_class, "from_xml_string", compile_text):
        yield
    if missed:
        raise Unavailable("no model file that it is made of has %s" % ", ".join(sorted(missed)))


@contextmanager
def _replaced(owner, name, function):
    original = vars(owner)[name]
    setattr(owner, name, staticmethod(function))
    try:
        yield
    finally:
        setattr(owner, name, original)


def _model_class(name):
    try:
        return importlib.import_module("mujoco").MjModel
    except ImportError as error:
        raise Unavailable("%s is in a MuJoCo model's file, and mujoco cannot be imported: %s" % (name, error))


def _rewritten(text, edits, missed):
    """The model's text with every element edited that a path leads to; what was found is no longer ``missed``."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise Unavailable("its model file cannot be edited: %s" % error)
    for name, value in edits.items():
        path, _, attribute = name.rpartition("@")
        for element in root.findall(".//" + path):
            element.set(attribute, _as_text(value))
            missed.discard(name)
    return ElementTree.tostring(root)


def _as_text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(repr(each) for each in value) if isinstance(value, list) else str(value)


def _compiled(compiler, source, more, keywords):
    try:
        return compiler(source, *more, **keywords)
    except ValueError as error:
        raise Unavailable("its edited model file does not compile: %s" % " ".join(str(error).split()))


def _beside(filename, text, folder):
    """Write the text where it has the file's surroundings: folders of links, in which only the file is another.

    A model names its meshes and what it includes by paths relative to itself.
    """
    here = path = os.path.abspath(filename)
    for _ in range(_FOLDERS_ABOVE + 1):
        here = os.path.dirname(here)
    for name in os.path.relpath(path, here).split(os.sep):
        os.makedirs(folder, exist_ok=True)
        for other in _readable(here):
            if other != name:
                os.symlink(os.path.join(here, other), os.path.join(folder, other))
        here, folder = os.path.join(here, name), os.path.join(folder, name)
    with open(folder, "wb") as file:
        file.write(text)
    return folder


def _readable(folder):
    """What lies in a folder; nothing where that may not be looked at, and so cannot be included from there either."""
    try:
        return os.listdir(folder)
    except OSError:
        return []
