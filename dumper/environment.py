"""Make, reset and step an environment through whatever API its release has: gym 0.21 to the newest gymnasium.

An :class:`Environment` hides three differences. ``reset`` seeds by argument or by ``env.seed``. ``step`` returns four
or five values. The full-precision state is ``unwrapped.state`` or MuJoCo's ``qpos`` and ``qvel``.
"""

import inspect

import numpy as np

SEED = 0  # every reset starts from the same seed; the state drawn from it is overwritten at once

# Names of the errors with which gym and gymnasium say that a release does not offer an environment.
_NOT_OFFERED = (
    "UnregisteredEnv",
    "NamespaceNotFound",
    "NameNotFound",
    "VersionNotFound",
    "DeprecatedEnv",
    "DependencyNotInstalled",
)


class Unavailable(Exception):
    """The release does not offer this environment, or not in a form that can be forced into a state."""


class Environment:
    """A made environment with one way to reset, impose, read and step."""

    def __init__(self, env):
        self.env = env
        self.unwrapped = env.unwrapped
        # Wrappers hand on whatever they are given: what the environment itself takes decides.
        self._seeds_by_argument = _takes(self.unwrapped.reset, "seed")
        self.reset()
        self.kind = _kind_of(self.unwrapped)

    def reset(self):
        """Start an episode from the fixed seed."""
        if self._seeds_by_argument:
            self.env.reset(seed=SEED)
        else:
            self.env.seed(SEED)
            self.env.reset()

    def impose(self, state):
        """Start an episode and overwrite its state, so that nothing of what was before, or of the reset, is left."""
        self.reset()
        if self.kind == "mujoco":
            _clear_mujoco(self.unwrapped)
            positions = self.unwrapped.model.nq
            self.unwrapped.set_state(state[:positions].copy(), state[positions:].copy())
        else:
            self.unwrapped.state = np.array(state, dtype=np.float64)

    def stepper(self, action):
        """Return a function of the action that gives five values: observation, reward, terminated, truncated, info.

        It is chosen once per cell, on the number of values of a trial step, so that the loop pays nothing for it.
        """
        step = self.env.step

        def four_made_five(action):
            observation, reward, done, info = step(action)
            # The old time limit sets the key only when it strikes, and says there whether the episode went on.
            limited = info.get("TimeLimit.truncated")
            if limited is None:
                return observation, reward, done, False, info
            return observation, reward, not limited, True, info

        return step if len(step(action)) == 5 else four_made_five

    def copier(self, rows):
        """Return a function of ``k`` that copies the state into ``rows[k]``: what the loop calls at every step."""
        unwrapped = self.unwrapped
        if self.kind == "mujoco":
            positions = unwrapped.model.nq
            qpos_rows, qvel_rows = rows[:, :positions], rows[:, positions:]
            qpos, qvel = unwrapped.data.qpos, unwrapped.data.qvel  # views of the simulator's own memory

            def copy_mujoco(k):
                qpos_rows[k] = qpos
                qvel_rows[k] = qvel

            return copy_mujoco

        def copy_state(k):
            rows[k] = unwrapped.state

        return copy_state

    def read(self):
        """The state now."""
        if self.kind == "mujoco":
            return np.concatenate([self.unwrapped.data.qpos, self.unwrapped.data.qvel])
        return np.array(self.unwrapped.state, dtype=np.float64)


def make(gym, identifier, arguments):
    """Make the environment through the release's public entry point, without the checker that wraps and warns."""
    keywords = dict(arguments)
    accepted = inspect.signature(gym.make).parameters
    if "disable_env_checker" in accepted:
        keywords["disable_env_checker"] = True
    if "new_step_api" in accepted:  # gym 0.25: five values on request
        keywords["new_step_api"] = True
    try:
        return Environment(gym.make(identifier, **keywords))
    except Unavailable:
        raise
    except Exception as error:
        if isinstance(error, ImportError) or type(error).__name__ in _NOT_OFFERED:
            raise Unavailable("%s: %s" % (type(error).__name__, " ".join(str(error).split())))
        raise


def close(environment):
    """Close, and let nothing that closing does matter any more."""
    try:
        environment.env.close()
    except Exception:  # the answer is complete; a renderer that cannot close is not part of it
        pass


def _clear_mujoco(unwrapped):
    """Forget the reset's own state: its accelerations would warm-start the solver, and they differ between releases."""
    import mujoco

    mujoco.mj_resetData(unwrapped.model, unwrapped.data)


def _takes(function, name):
    parameters = inspect.signature(function).parameters
    return name in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


def _kind_of(unwrapped):
    if all(hasattr(unwrapped, name) for name in ("set_state", "model", "data")) and hasattr(unwrapped.data, "qpos"):
        return "mujoco"
    state = getattr(unwrapped, "state", None)
    if state is not None and np.ndim(state) == 1 and np.asarray(state).dtype.kind == "f":
        return "state"
    raise Unavailable("its state cannot be imposed: it has neither a vector `state` nor MuJoCo's `qpos` and `qvel`")
