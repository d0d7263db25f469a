"""What may act in a MuJoCo model, what acts in a state, how far the rest is from acting, and what can be moved.

A comparison claims no more than what was exercised. This says what there is to exercise: pairs of geoms that may
collide, limits of joints and tendons, actuators that can saturate. It also moves one constant of the model, so that a
run can prove it would have noticed.
"""

import math

import numpy as np

_PLANE, _HFIELD, _SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX = range(7)  # mjtGeom, the same in every release
_BALL, _SLIDE, _HINGE = 1, 2, 3  # mjtJoint
_PAIRS_ONLY, _DYNAMIC_ONLY = 1, 2  # mjtCollision, gone with the option in mujoco 3
_SECTIONS = 24  # golden ones: they find a place on a segment to 1e-5 of its length
_GOLDEN = (math.sqrt(5) - 1) / 2

# What can be moved: the fields that have to move together, and whether the model derives others from them. Gravity
# stands first where it does work, last where it does none; a time step moves whatever has a speed.
_FIELDS = {
    "body_mass": (("body_mass", "body_inertia"), True),
    "dof_damping": (("dof_damping",), False),
    "dof_armature": (("dof_armature",), True),
    "actuator_gear": (("actuator_gear",), True),
    "jnt_stiffness": (("jnt_stiffness",), False),
    "geom_friction": (("geom_friction",), False),
}
_OPTIONS = ("timestep", "density", "viscosity")


class Physics:
    """The features and constants of one model, read off the data that its simulator has computed."""

    def __init__(self, mujoco, model, data):
        self._mujoco, self._model, self._data = mujoco, model, data
        self._pairs = _colliding_pairs(mujoco, model)
        self._keys = self._pairs[:, 0] * model.ngeom + self._pairs[:, 1]  # ascending: both are made in model order
        limits = not _disabled(mujoco, model, "CONSTRAINT", "LIMIT")
        self._joints = np.flatnonzero(_limited(model, _SLIDE, _HINGE) & limits)
        self._balls = np.flatnonzero(_limited(model, _BALL) & limits)
        self._tendons = np.flatnonzero(np.asarray(model.tendon_limited, dtype=bool) & limits)
        clamps = not _disabled(mujoco, model, "CLAMPCTRL", "ACTUATION")
        self._actuators = np.flatnonzero(np.asarray(model.actuator_ctrllimited, dtype=bool) & clamps)
        # Asked thousands of times: what does not change is looked up once. The arrays of data are its own memory.
        self._addresses = model.jnt_qposadr[self._joints]
        ranges = np.concatenate([model.jnt_range[self._joints], model.tendon_range[self._tendons]])
        margins = np.concatenate([model.jnt_margin[self._joints], model.tendon_margin[self._tendons]])
        self._low, self._high = ranges[:, 0] + margins, ranges[:, 1] - margins
        self._weakest, self._strongest = model.actuator_ctrlrange[self._actuators].T
        self._qpos, self._lengths, self._control = data.qpos, data.ten_length, data.ctrl
        self._places, self._turns = data.geom_xpos, data.geom_xmat
        self._kinds, self._sizes = model.geom_type.tolist(), model.geom_size.tolist()

    def features(self):
        """Names of what may act, in the order of :meth:`acting`."""
        geoms = [self.name("geom", geom) for geom in range(self._model.ngeom)]
        contacts = ["contact %s–%s" % (geoms[first], geoms[second]) for first, second in self._pairs]
        scalars = [self.name("joint", each) for each in self._joints]
        scalars += [self.name("tendon", each) for each in self._tendons]
        limits = ["limit %s %s" % (name, side) for name in scalars for side in ("low", "high")]
        limits += ["limit " + self.name("joint", each) for each in self._balls]
        return contacts + limits + ["saturated " + self.name("actuator", each) for each in self._actuators]

    def name(self, kind, index):
        """What the model calls an object; one without a name by its number, a geom by its number on its body."""
        code = getattr(self._mujoco.mjtObj, "mjOBJ_" + kind.upper())
        name = self._mujoco.mj_id2name(self._model, code, int(index))
        if name or kind != "geom":
            return name or "%s%d" % (kind, index)
        body = int(self._model.geom_bodyid[index])
        return "%s.geom%d" % (self.name("body", body), index - self._model.body_geomadr[body])

    def place(self, state):
        """Put the simulator into a state no further than :meth:`acting` and :meth:`gap` need: several times as fast."""
        model, data = self._model, self._data
        self._mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:], data.act[:] = np.split(state, [model.nq, model.nq + model.nv])
        self._mujoco.mj_fwdPosition(model, data)

    def acting(self):
        """What acts in the state that the simulator has computed: a bool for each feature."""
        control = self._control[self._actuators]
        saturated = (control <= self._weakest) | (control >= self._strongest)
        return np.concatenate([self._touching(), self._distances_to_limits() < 0, saturated])

    def gap(self, index):
        """How far a feature is from acting: zero or less where it acts, infinite where only an action decides.

        Exact for limits and for planes, spheres and capsules but for their margin. Of other shapes it takes what is
        inscribed in them, so that a gap of zero is always a contact, though there may be one before.
        """
        if index < len(self._pairs):
            return self._gap_of_pair(*self._pairs[index].tolist())
        distances = self._distances_to_limits()
        index -= len(self._pairs)
        return float(distances[index]) if index < len(distances) else math.inf

    def bounds(self):
        """Lowest and highest value of each entry of [qpos, qvel, act], infinite where the model sets no limit."""
        model = self._model
        low = np.full(model.nq + model.nv + model.na, -np.inf)
        high = -low
        limited = np.flatnonzero(_limited(model, _SLIDE, _HINGE))
        low[model.jnt_qposadr[limited]] = model.jnt_range[limited, 0]
        high[model.jnt_qposadr[limited]] = model.jnt_range[limited, 1]
        return low, high

    def constants(self):
        """Names of the constants that are not zero, the likeliest to act first."""
        options = [name for name in _OPTIONS if getattr(self._model.opt, name, 0)]
        fields = [name for name in _FIELDS if np.any(getattr(self._model, name, 0))]
        names = fields[:1] + options[:1] + fields[1:] + options[1:]
        if not np.any(self._model.opt.gravity):
            return names
        return ["gravity"] + names if self._gravity_works() else names + ["gravity"]

    def move(self, name, factor):
        """Multiply a constant, and let what the model derives from it follow."""
        if name == "gravity":
            self._model.opt.gravity[:] *= factor
        elif name in _OPTIONS:
            setattr(self._model.opt, name, getattr(self._model.opt, name) * factor)
        else:
            fields, derived = _FIELDS[name]
            for field in fields:
                getattr(self._model, field)[...] *= factor
            if derived:
                self._mujoco.mj_setConst(self._model, self._data)

    def _touching(self):
        """Which pairs have a contact that takes part in the step: one that a gap holds back does not."""
        touching = np.zeros(len(self._keys), dtype=bool)
        if self._data.ncon and len(self._keys):
            contact = self._data.contact
            first, second, left_out = contact.geom1, contact.geom2, contact.exclude
            keys = np.minimum(first, second).astype(np.int64) * self._model.ngeom + np.maximum(first, second)
            places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            touching[places[(left_out == 0) & (self._keys[places] == keys)]] = True
        return touching

    def _distances_to_limits(self):
        """Distance of each joint and tendon to each of its limits, less the margin at which the limit sets in."""
        values = np.concatenate([self._qpos[self._addresses], self._lengths[self._tendons]])
        distances = np.stack([values - self._low, self._high - values], axis=1).ravel()
        if not len(self._balls):
            return distances
        model = self._model
        angles = [_angle(self._qpos[address : address + 4]) for address in model.jnt_qposadr[self._balls]]
        highest = model.jnt_range[self._balls].max(axis=1) - model.jnt_margin[self._balls]
        return np.concatenate([distances, highest - angles])

    def _gap_of_pair(self, first, second):
        first, second = sorted((first, second), key=self._kinds.__getitem__)
        if self._kinds[first] in (_PLANE, _HFIELD):  # a plane has no edge; a height field is at least its base
            return self._height(first, second)
        if self._kinds[second] == _BOX:
            return self._gap_to_box(second, *self._segment(first))
        return _between_segments(self._segment(first), self._segment(second))

    def _segment(self, geom):
        """The capsule within a geom: centre, half of its axis, radius."""
        kind, size = self._kinds[geom], self._sizes[geom]
        centre = self._places[geom].tolist()
        half, axis, radius = 0.0, 2, 0.0  # of a mesh only its centre is known to be inside
        if kind == _SPHERE:
            radius = size[0]
        elif kind == _CAPSULE:
            radius, half = size[0], size[1]
        elif kind == _CYLINDER:
            radius = min(size[0], size[1])
            half = size[1] - radius
        elif kind == _ELLIPSOID:
            radius = min(size)
        elif kind == _BOX:
            radius, axis = min(size), size.index(max(size))
            half = size[axis] - radius
        direction = self._turns[geom].tolist()[axis::3]
        return centre, [half * each for each in direction], radius

    def _height(self, plane, geom):
        centre, half, radius = self._segment(geom)
        normal = self._turns[plane].tolist()[2::3]
        return _dot(_minus(centre, self._places[plane].tolist()), normal) - abs(_dot(half, normal)) - radius

    def _gap_to_box(self, box, centre, half, radius):
        """Distance of a capsule to a box: that of a point is convex along the capsule's axis."""
        size, turned = self._sizes[box], self._turns[box].tolist()
        offset = _minus(centre, self._places[box].tolist())
        middle = [_dot(turned[axis::3], offset) for axis in range(3)]
        reach = [_dot(turned[axis::3], half) for axis in range(3)]

        def distance(place):
            beyond = [abs(m + place * r) - s for m, r, s in zip(middle, reach, size)]
            outside = math.sqrt(sum(max(each, 0.0) ** 2 for each in beyond))
            return outside or max(beyond)

        return (_lowest(distance) if any(half) else distance(0.0)) - radius

    def _gravity_works(self):
        """Whether gravity pushes a joint of the model: it does not where everything moves in a level plane."""
        data = self._mujoco.MjData(self._model)
        bent = np.full(self._model.nv, 0.1)  # away from the reference, where a pendulum may hang at rest
        self._mujoco.mj_integratePos(self._model, data.qpos, bent, 1.0)
        self._mujoco.mj_forward(self._model, data)
        return bool(np.any(np.abs(data.qfrc_bias) > 1e-9))


def _colliding_pairs(mujoco, model):
    """Pairs of geoms that may collide, as MuJoCo chooses them, in model order: an array of two columns."""
    if _disabled(mujoco, model, "CONSTRAINT", "CONTACT"):
        return np.zeros((0, 2), dtype=np.int64)
    collision = getattr(model.opt, "collision", 0)  # from mujoco 3 on there is no such option: everything may collide
    chosen = np.zeros((model.ngeom, model.ngeom), dtype=bool)
    if collision != _PAIRS_ONLY:
        chosen |= _filtered(mujoco, model)
    if collision != _DYNAMIC_ONLY:
        chosen[model.pair_geom1, model.pair_geom2] = True
    chosen |= chosen.T
    flat = np.isin(model.geom_type, (_PLANE, _HFIELD))  # nothing collides two of these
    chosen &= ~(flat[:, None] & flat[None, :])
    return np.argwhere(np.triu(chosen, 1)).astype(np.int64)


def _filtered(mujoco, model):
    """The filter of the dynamic pairs: bit masks, bodies welded together, parent and child, excluded bodies."""
    masks = (model.geom_contype[:, None] & model.geom_conaffinity[None, :]) != 0
    welded = model.body_weldid[model.geom_bodyid]
    parents = model.body_weldid[model.body_parentid[welded]]
    chosen = (masks | masks.T) & (welded[:, None] != welded[None, :])
    if not _disabled(mujoco, model, "FILTERPARENT"):
        related = (welded[:, None] == parents[None, :]) & (welded[:, None] != 0) & (welded[None, :] != 0)
        chosen &= ~(related | related.T)
    for first, second in _excluded(mujoco, model):
        apart = (model.geom_bodyid == first)[:, None] & (model.geom_bodyid == second)[None, :]
        chosen &= ~(apart | apart.T)
    return chosen


def _excluded(mujoco, model):
    """Pairs of bodies that are excluded. Releases number them from 0 or from 1: a model of two bodies tells."""
    if not model.nexclude:
        return []
    bodies = "<body name='a'/><body name='b'/>"
    text = "<mujoco><worldbody>%s</worldbody><contact><exclude body1='a' body2='b'/></contact></mujoco>" % bodies
    base = (int(mujoco.MjModel.from_xml_string(text).exclude_signature[0]) >> 16) - 1
    return [((int(each) >> 16) - base, (int(each) & 0xFFFF) - base) for each in model.exclude_signature]


def _disabled(mujoco, model, *flags):
    bits = [int(getattr(mujoco.mjtDisableBit, "mjDSBL_" + flag)) for flag in flags]
    return any(model.opt.disableflags & bit for bit in bits)


def _limited(model, *kinds):
    return np.asarray(model.jnt_limited, dtype=bool) & np.isin(model.jnt_type, kinds)


def _angle(quaternion):
    """How far a quaternion turns, between 0 and pi."""
    return 2 * math.atan2(float(np.linalg.norm(quaternion[1:])), abs(float(quaternion[0])))


def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _minus(a, b):
    return [a[0] - b[0], a[1] - b[1], a[2] - b[2]]


def _within(place):
    return min(max(place, -1.0), 1.0)


def _between_segments(first, second):
    """Distance of two capsules: that of the nearest points of their axes, less both radii."""
    (centre_a, half_a, radius_a), (centre_b, half_b, radius_b) = first, second
    offset = _minus(centre_a, centre_b)
    aa, bb, ab = _dot(half_a, half_a), _dot(half_b, half_b), _dot(half_a, half_b)
    ao, bo = _dot(half_a, offset), _dot(half_b, offset)
    area = aa * bb - ab * ab
    s = _within((ab * bo - bb * ao) / area) if area > 1e-12 else 0.0
    t = _within((ab * s + bo) / bb) if bb > 0 else 0.0
    s = _within((ab * t - ao) / aa) if aa > 0 else 0.0
    apart = [o + s * a - t * b for o, a, b in zip(offset, half_a, half_b)]
    return math.sqrt(_dot(apart, apart)) - radius_a - radius_b


def _lowest(function):
    """The lowest value of a convex function on [-1, 1], by golden section."""
    low, high = -1.0, 1.0
    for _ in range(_SECTIONS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, right) if function(left) < function(right) else (left, high)
    return function((low + high) / 2)
