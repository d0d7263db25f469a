"""The templates of a reproducer's script. What they impose and read is what the dumper does."""

from __future__ import annotations

from string import Template

SCRIPT = Template('''\
# /// script
# requires-python = "$python"
# dependencies = [
$dependencies# ]
# ///
"""$about

    $older_command
    $newer_command

$told. What comes of it is printed in full precision; the
last line says with which of the two it was recorded so, or how far it is from each.
"""

$imports

PACKAGES = $packages
$given


${before}def $function():
$body

def flat(value):
    """One vector; the parts of a dictionary in the order of their names."""
    if isinstance(value, dict):
        value = tuple(value[key] for key in sorted(value))
    if isinstance(value, tuple):
        return np.concatenate([flat(part) for part in value])
    return np.ravel(value).astype(np.float64)


def farthest(outcome, recorded):
    """The largest difference between two outcomes, and where it is."""
    worst, place = 0.0, ""
    for name, values in outcome.items():
        then = np.array(recorded[name])
        if values.shape != then.shape:
            return float("inf"), "the length of " + name
        same = (values == then) | (np.isnan(values) & np.isnan(then))
        apart = np.nan_to_num(np.where(same, 0.0, np.abs(values - then)), nan=np.inf, posinf=np.inf)
        if apart.max(initial=0.0) > worst:
            worst, place = float(apart.max()), f"{name}[{apart.argmax()}]"
    return worst, place


${installed}def main():
    print("python " + platform.python_version(), *(f"{name} {$version(name)}" for name in PACKAGES), sep=", ")
    outcome = {name: flat(value) for name, value in $function().items()}
    for name, values in outcome.items():
        print(name, values.tolist())
    found = sorted((*farthest(outcome, recorded), name) for name, recorded in RECORDED.items())
    same = [name for size, _, name in found if size == 0]
    others = [f"off {name} by {size!r} at {place}" for size, place, name in found if size > 0]
    print("; ".join(["as recorded with " + (" and ".join(same) or "neither"), *others]))


RECORDED = {
$recorded}
$scene
main()
''')
"""The whole script."""

SET_OTHERWISE = Template("""\
    for name, value in $edits.items():
        $call, name, value)
""")
"""What is edited."""

INSTALLED = """\
def installed(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


"""
"""For a distribution that only one of the two releases has."""

IMPORT_EITHER = """

try:
    import gymnasium as gym
except ImportError:
    import gym"""
"""Where one release has gymnasium and the other gym."""

IMPORT_SUITE = """

os.environ.setdefault("MUJOCO_GL", "disable")  # nothing is drawn
from dm_control import suite  # noqa: E402"""
"""After the other imports, as a variable is set before it."""

IMPOSE = '''\
def impose(model, data):
    """Set the state in data that were just cleared, compute what follows from it, and leave no trace of that."""
    data.qpos[:], data.qvel[:], data.act[:] = np.split(STATE, [model.nq, model.nq + model.nv])
    mujoco.mj_forward(model, data)
    data.qpos[:] = STATE[: model.nq]  # some releases normalise quaternions in place
    data.qacc_warmstart[:] = 0  # the step starts cold


'''
"""A state of MuJoCo."""

REGISTERED_STEP = Template("""\
$make$edits$reset
    world = env.unwrapped
$impose
    observation, reward = env.step(ACTION)[:2]
    return {"state": $read, "observation": observation, "reward": reward}
""")
"""The body of ``take_step`` for a registered environment."""

REGISTERED_RESET = Template("""\
$make$edits$start
$world    return {"state": $read, "observation": observation}
""")
"""The body of ``start`` for a registered environment."""

MAKE = Template("""\
    env = gym.make($id$keywords, disable_env_checker=True)
""")
"""With gymnasium."""

MAKE_EITHER = Template("""\
    unchecked = "disable_env_checker" in inspect.signature(gym.make).parameters
    env = gym.make($id$keywords, **({"disable_env_checker": True} if unchecked else {}))
""")
"""With any gym, or gymnasium."""

RESET = Template("""\
    env.reset(seed=$seed)""")
"""With gymnasium."""

RESET_EITHER = Template("""\
    try:
        env.reset(seed=$seed)
    except TypeError:  # before gym 0.22
        env.seed($seed)
        env.reset()""")
"""With any gym, or gymnasium."""

START = """\
    observation = env.reset(seed=SEED)[0]"""
"""With gymnasium."""

START_EITHER = """\
    try:
        returned = env.reset(seed=SEED)
    except TypeError:  # before gym 0.22
        env.seed(SEED)
        returned = env.reset()
    pair = isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], dict)
    observation = returned[0] if pair else returned"""
"""With any gym, or gymnasium."""

IMPOSE_MUJOCO = """\
    mujoco.mj_resetData(world.model, world.data)
    impose(world.model, world.data)"""
"""On a registered environment on MuJoCo."""

IMPOSE_STATE = """\
    world.state = np.array(STATE, dtype=np.float64)"""
"""On a registered environment that has its state in an attribute."""

READ = {"mujoco": "(world.data.qpos, world.data.qvel, world.data.act)", "state": "world.state"}
"""The state of a registered environment; others do not publish one."""

MAKE_SCENE = Template("""\
    model = mujoco.MjModel.$model
""")
"""The compiled scene."""

SCENE_STEP = Template("""\
$make    data = mujoco.MjData(model)
    $clear
    impose(model, data)
    data.ctrl[:] = ACTION
    mujoco.mj_step(model, data, $frame_skip)
    # As a program finds them after mj_step: MuJoCo computes them at the beginning of the last step.
    observation = data.sensordata, data.xpos[1:], data.xquat[1:]
    return {"state": (data.qpos, data.qvel, data.act), "observation": observation, "reward": 0.0}  # it has none
""")
"""The body of ``take_step`` for a scene."""

SCENE_RESET = Template("""\
$make    data = mujoco.MjData(model)
    $clear
    position = data.qpos.copy()
    mujoco.mj_forward(model, data)
    data.qpos[:] = position  # some releases normalise quaternions in place
    observation = data.sensordata, data.xpos[1:], data.xquat[1:]
    return {"state": (data.qpos, data.qvel, data.act), "observation": observation}
""")
"""The body of ``start`` for a scene, in which nothing is random."""

MAKE_TASK = Template("""\
    env = suite.load($domain, $task$keywords)
""")
"""A task of dm_control."""

SUITE_STEP = Template("""\
$make    env.task.random.seed($seed)
    env.reset()
    model, data = env.physics.model.ptr, env.physics.data.ptr
    mocap = data.mocap_pos.copy(), data.mocap_quat.copy()
    mujoco.mj_resetData(model, data)
    data.mocap_pos[:], data.mocap_quat[:] = mocap
    impose(model, data)
    taken = env.step(ACTION)
    state = data.qpos, data.qvel, data.act
    return {"state": state, "observation": taken.observation, "reward": taken.reward or 0.0}
""")
"""The body of ``take_step`` for a task of dm_control."""

SUITE_RESET = Template("""\
$make    env.task.random.seed(SEED)
    observation = env.reset().observation
    data = env.physics.data.ptr
    return {"state": (data.qpos, data.qvel, data.act), "observation": observation}
""")
"""The body of ``start`` for a task of dm_control."""

MAKE_ADAPTED = Template("""\
    handle = adapter.make($keywords)
""")
"""Whatever the adapter makes."""

ADAPTED_STEP = Template("""\
$make$edits    adapter.impose(handle, np.array(STATE, dtype=np.float64))
    observation, reward = adapter.step(handle, ACTION)[:2]
    return {"state": adapter.read(handle), "observation": observation, "reward": reward}
""")
"""The body of ``take_step`` for an adapter."""

ADAPTED_RESET = Template("""\
$make$edits    if hasattr(adapter, "reset"):
        observation = np.array(adapter.reset(handle, SEED))
    else:  # an episode starts at the reference
        reference = adapter.layout(handle).get("reference", adapter.read(handle))
        adapter.impose(handle, np.array(reference, dtype=np.float64))
        observation = np.array(adapter.read(handle))
    return {"state": adapter.read(handle), "observation": observation}
""")
"""The body of ``start`` for an adapter."""
