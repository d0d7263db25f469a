"""What an environment is made of: layout, spaces, time step, public constants, digests of its source and model."""

import hashlib
import inspect
import platform

import numpy as np

_LONGEST_CONSTANT = 64  # entries; a longer array is described by its digest
_QUATERNION_JOINTS = {
    0: 3,
    1: 0,
}  # MuJoCo: a free joint's quaternion starts at its 4th position, a ball joint's at once
_NO_LIMIT = 1e6  # spaces say "unlimited" also by the largest float


def description(world):
    """Everything about a registered environment that is not a step."""
    unwrapped = world.unwrapped
    return {
        "layout": world.layout(),
        "spaces": {
            "action": space(world.env.action_space),
            "observation": space(world.env.observation_space),
        },
        "time_step": _time_step(unwrapped),
        "constants": constants(unwrapped),
        "source_sha256": _source_digest(type(unwrapped)),
        "model_sha256": _model_digest(unwrapped),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def quaternions(model):
    """Where in a MuJoCo model's positions a unit quaternion begins."""
    found = []
    for kind, address in zip(model.jnt_type.tolist(), model.jnt_qposadr.tolist()):
        if kind in _QUATERNION_JOINTS:
            found.append(int(address) + _QUATERNION_JOINTS[kind])
    return found


def limits(values):
    """Limits of the entries of a state, ``None`` where an entry has none."""
    return [float(value) if np.isfinite(value) and abs(value) < _NO_LIMIT else None for value in values]


def space(given):
    """A space as JSON can hold it."""
    kind = type(given).__name__
    described = {"type": kind}
    if kind == "Box":
        described.update(shape=list(given.shape), dtype=str(given.dtype), low=None, high=None)
        if given.low.size <= _LONGEST_CONSTANT:
            described.update(low=_numbers(given.low), high=_numbers(given.high))
        else:
            described.update(bounds=[_numbers(given.low), _numbers(given.high)])
    elif kind == "Discrete":
        described.update(n=int(given.n), start=int(getattr(given, "start", 0)))
    else:
        described.update(text=str(given))
    return described


def _numbers(array):
    if array.size > _LONGEST_CONSTANT:
        return {"sha256": hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest(), "size": int(array.size)}
    return [repr(float(value)) for value in np.ravel(array)]


def _time_step(unwrapped):
    for name in ("dt", "tau"):
        value = getattr(unwrapped, name, None)
        if isinstance(value, (int, float, np.number)):
            return float(value)
    return None


def constants(unwrapped):
    """Public attributes that are numbers, strings or small numeric arrays, of the instance and of its class."""
    names = set(vars(unwrapped)) | {name for name in dir(type(unwrapped)) if name.isupper()}
    found = {}
    for name in sorted(names):
        if name.startswith("_") or name == "state":
            continue
        value = getattr(unwrapped, name, None)
        if isinstance(value, (bool, int, str)):
            found[name] = repr(value)
        elif isinstance(value, (float, np.floating, np.integer)):
            found[name] = repr(float(value))
        elif isinstance(value, (list, tuple, np.ndarray)):
            array = np.asarray(value) if not isinstance(value, (list, tuple)) or _all_numbers(value) else None
            if array is not None and array.dtype.kind in "biuf":
                found[name] = repr(_numbers(array.astype(np.float64)))
    return found


def _all_numbers(values):
    return len(values) > 0 and all(isinstance(value, (int, float, np.number)) for value in values)


def _source_digest(cls):
    try:
        return hashlib.sha256(inspect.getsource(cls).encode("utf-8")).hexdigest()
    except (OSError, TypeError):  # a class without a source file, such as a compiled one
        return None


def _model_digest(unwrapped):
    path = getattr(unwrapped, "fullpath", None)
    if not isinstance(path, str):
        return None
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:  # a name that is no file says nothing about the model
        return None
