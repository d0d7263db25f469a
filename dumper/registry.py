"""Which environments a release has registered: what can be asked about at all."""

import importlib

from dumper.answers import Answer
from dumper.worlds import Unavailable


def answer(module):
    """The ids in the registry of ``module``, gym or gymnasium, every version of each."""
    try:
        envs = importlib.import_module(module + ".envs")
    except ImportError as error:
        raise Unavailable("%s has no registry that could be asked: %s" % (module, error))
    registry = getattr(envs, "registry", None)
    if registry is None:
        raise Unavailable("%s has no registry that could be asked" % module)
    entries = getattr(registry, "env_specs", registry)  # up to gym 0.25 the registry is an object around its entries
    return Answer("ok", "", meta={"ids": sorted(str(each) for each in entries)})
