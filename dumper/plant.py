"""Choose where to plant a fault, so that an audit can show that it would have seen it."""

from dumper.record import Incomparable, as_arguments

_TRIED = 16  # forced states on which a constant is tried
_GROSS = 1.1  # a constant that acts at all shows when it is moved by a tenth


def first_that_acts(world, stimulus):
    """The name of the first constant that makes a difference to some forced step. It leaves the world moved."""
    stride = max(1, len(stimulus["forced.states"]) // _TRIED)
    states = stimulus["forced.states"][::stride]
    actions = [as_arguments(each)[0] for each in stimulus["forced.actions"][::stride]]
    world.impose(states[0])
    step = world.stepper(actions[0])
    before = _outcomes(world, step, states, actions)
    names = world.constants()
    for name in names:
        world.move(name, _GROSS)
        if _outcomes(world, step, states, actions) != before:
            return name
    if names:
        raise Incomparable("moving %s by a tenth made no difference to any forced step" % ", ".join(names))
    raise Incomparable("it has no constant that could be moved")


def _outcomes(world, step, states, actions):
    found = []
    for state, action in zip(states, actions):
        world.impose(state)
        step(action.copy() if hasattr(action, "copy") else action)
        found.append(world.read().tobytes())
    return found
