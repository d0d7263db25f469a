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


def layout(environment):
    """What the orchestrator must know to draw states and actions: sizes, a reference state, the action space."""
    size = _state_size(environment)
    reference = environment.read()
    positions, quaternions = size, []
    if environment.kind == "mujoco":
        model = environment.unwrapped.model
        positions = int(model.nq)
        reference[:positions] = environment.unwrapped.init_qpos
        reference[positions:] = environment.unwrapped.init_qvel
        for kind, address in zip(model.jnt_type.tolist(), model.jnt_qposadr.tolist()):
            if kind in _QUATERNION_JOINTS:
                quaternions.append(address + _QUATERNION_JOINTS[kind])
    return {
        "kind": environment.kind,
        "state_size": size,
        "positions": positions,
        "quaternions": quaternions,
        "reference": reference.tolist(),
        "action": _space(environment.env.action_space),
    }


def description(environment):
    """Everything about the environment that is not a step."""
    unwrapped = environment.unwrapped
    return {
        "layout": layout(environment),
        "spaces": {
            "action": _space(environment.env.action_space),
            "observation": _space(environment.env.observation_space),
        },
        "time_step": _time_step(unwrapped),
        "constants": _constants(unwrapped),
        "source_sha256": _source_digest(type(unwrapped)),
        "model_sha256": _model_digest(unwrapped),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _state_size(environment):
    if environment.kind == "mujoco":
        return int(environment.unwrapped.model.nq + environment.unwrapped.model.nv)
    return len(environment.unwrapped.state)


def _space(space):
    kind = type(space).__name__
    described = {"type": kind}
    if kind == "Box":
        described.update(shape=list(space.shape), dtype=str(space.dtype), low=None, high=None)
        if space.low.size <= _LONGEST_CONSTANT:
            described.update(low=_numbers(space.low), high=_numbers(space.high))
    elif kind == "Discrete":
        described.update(n=int(space.n), start=int(getattr(space, "start", 0)))
    else:
        described.update(text=str(space))
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


def _constants(unwrapped):
    """Public attributes that are numbers, strings or small numeric arrays, of the instance and of its class."""
    names = set(vars(unwrapped)) | {name for name in dir(type(unwrapped)) if name.isupper()}
    constants = {}
    for name in sorted(names):
        if name.startswith("_") or name == "state":
            continue
        value = getattr(unwrapped, name, None)
        if isinstance(value, (bool, int, str)):
            constants[name] = repr(value)
        elif isinstance(value, (float, np.floating, np.integer)):
            constants[name] = repr(float(value))
        elif isinstance(value, (list, tuple, np.ndarray)):
            array = np.asarray(value) if not isinstance(value, (list, tuple)) or _all_numbers(value) else None
            if array is not None and array.dtype.kind in "biuf":
                constants[name] = repr(_numbers(array.astype(np.float64)))
    return constants


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
