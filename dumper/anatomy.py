"""Everything that an environment is made of, by name: numbers as arrays, all else as text.

Where two releases step differently, they may do so because what is stepped is another: a mass, a time step, a limit of
an episode. What does not act on a step is left out, or every two releases would differ in something.
"""

import hashlib
import os

import numpy as np

from dumper.answers import Answer

LARGEST = 100000
"""Entries of an array; a larger one, such as a mesh, is told by its digest."""

LONGEST = 2000
"""Characters of a text; a longer one is told by its digest."""

SEEDS = (0, 1)
"""An attribute that differs after resets from these is where an episode begins, and nothing it is made of."""

# Of a compiled model: how things look, what they are called, how they are laid out in memory and in files.
_LOOKS = (
    "mat_", "tex_", "light_", "cam_", "skin_", "nmat", "ntex", "nlight", "ncam", "nskin", "nuser_cam", "mesh_normal",
    "mesh_texcoord", "mesh_facenormal", "mesh_facetexcoord", "nmeshnormal", "nmeshtexcoord", "flex_texcoord",
    "nflextexcoord", "geom_castshadow",
)  # fmt: skip
_BOOKKEEPING = (
    "name", "nnames", "paths", "npaths", "text_", "nbuffer", "narena", "nstack", "signature", "map", "B_", "D_", "M_",
    "nB", "nC", "nD", "nJ", "nM", "dof_Madr",
)  # fmt: skip
# And what a simulator works out from the rest to be faster: where it is wrong, contacts are missed, and that shows.
_SHORTCUTS = (
    "bvh_", "nbvh", "body_bvh", "mesh_bvh", "flex_bvh", "oct_", "noct", "mesh_oct", "geom_aabb", "geom_rbound",
    "body_simple", "dof_simplenum",
)  # fmt: skip
_ENDINGS = ("_rgba", "_matid", "_texcoord", "_elemtexcoord", "pathadr", "_sameframe")
# Of an environment: how it looks, what belongs to the episode that it is in, what Python and its base classes keep.
_NOT_MADE_OF = (
    "metadata", "render", "screen", "viewer", "window", "camera", "np_random", "ezpickle", "is_protocol", "abc_",
)  # fmt: skip

# What the entries of a model's fields are, by how the fields begin.
_OWNERS = {
    "body_": "body", "jnt_": "joint", "dof_": "dof", "geom_": "geom", "site_": "site", "actuator_": "actuator",
    "tendon_": "tendon", "sensor_": "sensor", "eq_": "equality", "pair_": "pair", "exclude_": "exclude",
    "key_": "key", "mesh_": "mesh", "hfield_": "hfield", "numeric_": "numeric", "flex_": "flex", "qpos": "qpos",
}  # fmt: skip
_HOW_MANY = {
    "body": "nbody", "joint": "njnt", "geom": "ngeom", "site": "nsite", "actuator": "nu", "tendon": "ntendon",
    "sensor": "nsensor", "equality": "neq", "pair": "npair", "exclude": "nexclude", "key": "nkey", "mesh": "nmesh",
    "hfield": "nhfield", "numeric": "nnumeric", "flex": "nflex",
}  # fmt: skip


class Anatomy:
    """The parts that were told: arrays of numbers, names of their entries, texts."""

    def __init__(self):
        self.arrays, self.names, self.texts = {}, {}, {}

    def add(self, field, value, names=None):
        """Tell a part. One that is neither numbers nor simple is not told; neither is an array without entries."""
        array = _as_numbers(value)
        if array is None:
            self._add_text(field, _as_text(value))
        elif array.size > LARGEST:
            self._add_text(field, "%s%s %s" % (array.dtype, array.shape, _digest(array.tobytes())))
        elif array.size:
            self.arrays[field] = array
            fitting = names is not None and array.ndim and len(names) == len(array)
            self.names[field] = names if fitting else None

    def add_all(self, prefix, parts):
        """Tell parts that have names of their own."""
        for name, value in parts.items():
            self.add(prefix + name, value)

    def without(self, fields):
        """Forget some parts."""
        for field in fields:
            for told in (self.arrays, self.names, self.texts):
                told.pop(field, None)

    def _add_text(self, field, text):
        if text is not None:
            self.texts[field] = text if len(text) <= LONGEST else _digest(text.encode("utf-8"))


class Names:
    """What the objects of a model are called, and the entries of vectors over its joints."""

    def __init__(self, physics, model):
        self._physics, self._model = physics, model

    def of(self, kind):
        """Names of all objects of a kind; of ``dof`` and ``qpos``, those of the joints they belong to."""
        model = self._model
        if kind == "dof":
            return self._entries(model.jnt_dofadr.tolist(), model.nv)
        if kind == "qpos":
            return self._entries(model.jnt_qposadr.tolist(), model.nq)
        count = getattr(model, _HOW_MANY[kind], 0)
        if kind == "actuator":
            count = getattr(model, "nactuator", count)  # from mujoco 4 on one may have several controls
        return [self._physics.name(kind, index) for index in range(count)]

    def _entries(self, addresses, total):
        found = []
        for joint, (start, stop) in enumerate(zip(addresses, addresses[1:] + [total])):
            name = self._physics.name("joint", joint)
            found += [name] if stop - start == 1 else ["%s[%d]" % (name, k) for k in range(stop - start)]
        return found


def answer(world):
    """Everything that the world is made of."""
    found = Anatomy()
    world.dissect(found)
    arrays = {"constant." + field: array for field, array in found.arrays.items()}
    return Answer("ok", "", arrays=arrays, meta={"names": found.names, "texts": found.texts})


def add_model(found, names, model):
    """Every number of a compiled MuJoCo model that may act on a step."""
    called = {}
    for field in _numeric_fields(model):
        if field.startswith(_LOOKS + _BOOKKEEPING + _SHORTCUTS) or field.endswith(_ENDINGS):
            continue
        owner = next((kind for start, kind in _OWNERS.items() if field.startswith(start)), None)
        if owner is not None and owner not in called:
            called[owner] = names.of(owner)
        found.add(field, getattr(model, field), called.get(owner))
    for part in ("opt", "stat"):
        options = getattr(model, part)
        found.add_all(part + ".", {field: getattr(options, field) for field in _numeric_fields(options)})


def _numeric_fields(owner):
    numeric = (bool, int, float, np.generic, np.ndarray)
    return [name for name in dir(owner) if not name.startswith("_") and isinstance(getattr(owner, name), numeric)]


def add_attributes(found, owner, reset):
    """What an object holds and what its classes set, but for what a ``reset`` from another seed changes."""
    told = []
    for seed in SEEDS:
        reset(seed)
        told.append(Anatomy())
        told[-1].add_all("attribute.", _attributes(owner))
    first, second = told
    first.without([field for field in first.arrays if not _same(first.arrays[field], second.arrays.get(field))])
    first.without([field for field in first.texts if first.texts[field] != second.texts.get(field)])
    found.arrays.update(first.arrays)
    found.names.update(first.names)
    found.texts.update(first.texts)


def add_spec(found, spec):
    """The entry of the registry that an environment was made from."""
    parts = {name.lstrip("_"): value for name, value in vars(spec).items()}
    parts.pop("disable_env_checker", None)  # the dumper's own wish
    kwargs = parts.pop("kwargs", None) or {}
    found.add_all("spec.", parts)
    for name, value in kwargs.items():
        text = _as_text(value)
        if text is not None:
            found.texts["spec.kwargs." + name] = text


def add_space(found, field, space):
    """What a space is: its kind, its limits; of one in parts, those of each part."""
    parts = getattr(space, "spaces", None)
    if parts is not None:
        for name, part in parts.items() if hasattr(parts, "items") else enumerate(parts):
            add_space(found, "%s.%s" % (field, name), part)
        return
    found.add(field, "%s %s%s" % (type(space).__name__, getattr(space, "dtype", ""), getattr(space, "shape", "")))
    for limit in ("low", "high", "n", "start", "nvec"):
        found.add("%s.%s" % (field, limit), getattr(space, limit, ()))


def _attributes(owner):
    found = {}
    for kind in reversed(type(owner).__mro__):
        found.update(vars(kind))
    found.update(getattr(owner, "__dict__", {}))
    names = [name for name in sorted(found) if not name.startswith("__")]
    names = [name for name in names if name != "state" and not name.lstrip("_").startswith(_NOT_MADE_OF)]
    return {name: found[name] for name in names}


def _same(one, other):
    return other is not None and one.dtype == other.dtype and one.tobytes() == other.tobytes()


def _as_numbers(value):
    """A copy of the numbers as an array, or nothing where they are none."""
    if not isinstance(value, (bool, int, float, np.generic, np.ndarray, list, tuple)):
        return None
    try:
        array = np.array(value)
    except ValueError:  # lists of different lengths
        return None
    return array if array.dtype.kind in "biuf" else None


def _as_text(value):
    """A simple value as text, the same under every numpy; nothing where it holds something that is not simple.

    Of a path, which tells where a release is installed, only the file's name.
    """
    if isinstance(value, str):
        return os.path.basename(value) if os.path.isabs(value) else value
    try:
        return repr(_plain(value))
    except (TypeError, RecursionError):
        return None


def _plain(value):
    if isinstance(value, (np.generic, np.ndarray)) and value.dtype.kind != "O":  # some are floats too
        return value.tolist()
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    if isinstance(value, dict):
        return {_plain(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, map(_plain, value)))
    raise TypeError("a %s is not simple" % type(value).__name__)


def _digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()
