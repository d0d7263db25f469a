"""Environments registered with gym or gymnasium, through whatever API the release has: gym 0.21 to the newest.

Three differences are hidden here. ``reset`` seeds by argument or by ``env.seed``. ``step`` returns four or five values.
The full-precision state is ``unwrapped.state``, or MuJoCo's ``qpos`` and ``qvel``, or it cannot be had at all.
"""

import inspect

import numpy as np

from dumper import anatomy, describe, tracing
from dumper.on_mujoco import OnMujoco
from dumper.worlds import Unavailable, World

SEED = 0  # a state is imposed after a reset from this seed, and what was drawn from it is overwritten at once

# Names of the errors with which gym and gymnasium say that a release does not offer an environment.
_NOT_OFFERED = (
    "UnregisteredEnv",
    "NamespaceNotFound",
    "NameNotFound",
    "VersionNotFound",
    "DeprecatedEnv",
    "DependencyNotInstalled",
)

# Of the constants that classic environments have, those that every step uses.
_LIKELY_CONSTANTS = ("gravity", "g", "dt", "tau", "power", "force")


def make(gym, identifier, arguments):
    """Make the environment through the release's public entry point, without the checker that wraps and warns."""
    keywords = dict(arguments)
    accepted = inspect.signature(gym.make).parameters
    if "disable_env_checker" in accepted:
        keywords["disable_env_checker"] = True
    if "new_step_api" in accepted:  # gym 0.25: five values on request
        keywords["new_step_api"] = True
    try:
        env = gym.make(identifier, **keywords)
    except Exception as error:
        if isinstance(error, ImportError) or type(error).__name__ in _NOT_OFFERED:
            raise Unavailable("%s: %s" % (type(error).__name__, " ".join(str(error).split())))
        raise
    return wrap(env)


def wrap(env):
    """Choose the kind by what the environment publishes after a reset."""
    _Registered(env).reset(SEED)
    unwrapped = env.unwrapped
    if all(hasattr(unwrapped, name) for name in ("set_state", "model", "data")) and hasattr(unwrapped.data, "qpos"):
        return ForcedMujoco(env)
    if isinstance(getattr(unwrapped, "P", None), (dict, list)):
        return Table(env)
    state = getattr(unwrapped, "state", None)
    if state is not None and np.ndim(state) == 1 and np.asarray(state).dtype.kind == "f":
        return ForcedState(env)
    return Replayed(env)


class _Registered(World):
    """What all registered environments have in common."""

    def __init__(self, env):
        self.env = env
        self.unwrapped = env.unwrapped
        # Wrappers hand on whatever they are given: what the environment itself takes decides.
        self._seeds_by_argument = _takes(self.unwrapped.reset, "seed")

    def layout(self):
        state = self.read()
        return {
            "kind": self.kind,
            "evidence": self.evidence,
            "state_size": len(state),
            "positions": len(state),
            "quaternions": [],
            "reference": state.tolist(),
            "low": None,
            "high": None,
            "action": describe.space(self.env.action_space),
        }

    def description(self):
        return describe.description(self)

    def reset(self, seed):
        if self._seeds_by_argument:
            returned = self.env.reset(seed=seed)
        else:
            self.env.seed(seed)
            returned = self.env.reset()
        # From gym 0.26 on: the observation and a dictionary beside it.
        if isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], dict):
            return returned[0]
        return returned

    def read(self):
        return np.zeros(0)

    def stepper(self, action):
        # Chosen once per cell, on the number of values of a trial step, so that the loop pays nothing for it.
        step = self.env.step

        def four_made_five(action):
            observation, reward, done, info = step(action)
            # The old time limit sets the key only when it strikes, and says there whether the episode went on.
            limited = info.get("TimeLimit.truncated")
            if limited is None:
                return observation, reward, done, False, info
            return observation, reward, not limited, True, info

        return step if len(step(action)) == 5 else four_made_five

    def edit(self, name, value):
        owner, now = None, self.unwrapped
        for attribute in name.split("."):  # such as model.opt.timestep
            if not hasattr(now, attribute):
                raise Unavailable("it has no %s that could be edited" % name)
            owner, now = now, getattr(now, attribute)
        try:
            setattr(owner, attribute, _like(now, value))
        except (AttributeError, TypeError, ValueError):  # a property, or a value of another kind
            raise Unavailable("its %s is %r and cannot be made %r" % (name, now, value))

    def dissect(self, found):
        anatomy.add_attributes(found, self.unwrapped, self.reset)
        anatomy.add_space(found, "space.action", self.env.action_space)
        anatomy.add_space(found, "space.observation", self.env.observation_space)
        found.add("wrappers", _wrappers(self.env))
        if getattr(self.env, "spec", None) is not None:
            anatomy.add_spec(found, self.env.spec)

    def close(self):
        try:
            self.env.close()
        except Exception:  # the answer is complete; a renderer that cannot close is not part of it
            pass


class ForcedState(_Registered):
    """An environment that steps from the vector ``state`` it publishes, as classic control does."""

    kind = "state"

    def layout(self):
        layout = super().layout()
        space = self.env.observation_space
        low, high = getattr(space, "low", None), getattr(space, "high", None)
        if np.shape(low) == (layout["state_size"],):
            layout.update(low=describe.limits(low), high=describe.limits(high))
        return layout

    def impose(self, state):
        self.reset(SEED)
        self.unwrapped.state = np.array(state, dtype=np.float64)

    def read(self):
        return np.array(self.unwrapped.state, dtype=np.float64)

    def copier(self, rows):
        unwrapped = self.unwrapped

        def copy(k):
            rows[k] = unwrapped.state

        return copy

    def watcher(self, rows):
        return self.tracer(rows)

    def tracer(self, rows):
        return tracing.of_method(self.unwrapped, "step", rows)

    def constants(self):
        others = sorted(set(describe.constants(self.unwrapped)) - set(_LIKELY_CONSTANTS))
        return [name for name in (*_LIKELY_CONSTANTS, *others) if self._is_number(name)]

    def move(self, name, factor):
        setattr(self.unwrapped, name, getattr(self.unwrapped, name) * factor)

    def _is_number(self, name):
        value = getattr(self.unwrapped, name, None)
        return isinstance(value, (float, np.floating)) and np.isfinite(value) and value != 0


class ForcedMujoco(OnMujoco, _Registered):
    """An environment on MuJoCo."""

    def __init__(self, env):
        import mujoco

        _Registered.__init__(self, env)
        OnMujoco.__init__(self, mujoco, self.unwrapped.model, self.unwrapped.data)

    def impose(self, state):
        self.reset(SEED)
        self._mujoco.mj_resetData(self._model, self._data)
        self.overwrite(state)

    def reference(self):
        return np.concatenate([self.unwrapped.init_qpos, self.unwrapped.init_qvel, self._data.act])

    def action(self):
        return describe.space(self.env.action_space)

    def dissect(self, found):
        OnMujoco.dissect(self, found)
        _Registered.dissect(self, found)

    def tracer(self, rows):
        return tracing.of_method(self.unwrapped, "step", rows)


class Replayed(_Registered):
    """An environment whose state cannot be imposed: it is started from a seed and given actions."""

    kind = "replay"
    evidence = "replayed"


class Table(_Registered):
    """A toy environment that publishes all of its transitions."""

    kind = "table"
    evidence = "table"

    def layout(self):
        layout = super().layout()
        layout.update(rows=len(self.transitions()["reward"]))
        return layout

    def transitions(self):
        """Every transition: from which state under which action, with what probability, to which state."""
        given, outcome, rewards, ends = [], [], [], []
        table = self.unwrapped.P
        for state in sorted(table) if isinstance(table, dict) else range(len(table)):
            actions = table[state]
            for action in sorted(actions) if isinstance(actions, dict) else range(len(actions)):
                for probability, following, reward, end in actions[action]:
                    given.append((state, action))
                    outcome.append((probability, following))
                    rewards.append(reward)
                    ends.append(end)
        state = np.array(outcome, dtype=np.float64)
        return {
            "imposed": np.array(given, dtype=np.float64),
            "state": state[:, None],
            "observation": state[:, None, 1].astype(np.int64),
            "reward": np.array(rewards, dtype=np.float64)[:, None],
            "terminated": np.array(ends, dtype=np.bool_)[:, None],
            "truncated": np.zeros((len(ends), 1), dtype=np.bool_),
        }


def _like(now, value):
    """A value from JSON, in the type of the one that it replaces where JSON has no such type."""
    if isinstance(now, (np.ndarray, np.generic)):
        return np.broadcast_to(value, np.shape(now)).astype(now.dtype, casting="same_kind")[()]
    return type(now)(value) if isinstance(now, (float, tuple)) else value


def _wrappers(env):
    """What stands around an environment, the outermost first."""
    found = []
    while env is not env.unwrapped:
        found.append(type(env).__name__)
        env = env.env
    return " ".join(found)


def _takes(function, name):
    parameters = inspect.signature(function).parameters
    return name in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())
