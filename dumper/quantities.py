"""The quantities that MuJoCo computes in a substep, and how they are read off its data.

Two releases keep the same quantity in different ways: a matrix in another layout, contacts in another order. Everything
is read in a form that means the same in all of them: matrices are written out in full, contacts are sorted.
"""

from operator import attrgetter

import numpy as np

# In the order of computation. Of the factors of the mass matrix, whose layout changed more than once, the diagonal. Not
# the axes of an inertia (`ximat`): where two moments are equal, releases choose different ones; `cinert` has no choice.
STAGES = (
    ("kinematics", ("xpos", "xquat", "xipos", "xanchor", "xaxis", "geom_xpos", "geom_xmat", "site_xpos", "site_xmat")),
    ("kinematics", ("flexvert_xpos", "flexedge_length", "ten_length", "actuator_length")),
    ("inertia", ("subtree_com", "cinert", "cdof", "crb", "mass", "qLDiagInv")),
    ("collision", ("ncon", "pair", "dist", "pos", "frame", "includemargin", "friction", "solref", "solimp")),
    ("constraint", ("ne", "nf", "nl", "nefc", "efc_type", "efc_id", "efc_J", "efc_pos", "efc_margin")),
    ("constraint", ("efc_diagApprox", "efc_R", "efc_D")),
    ("velocity", ("ten_velocity", "actuator_velocity", "cvel", "cdof_dot", "qfrc_passive", "efc_vel", "efc_aref")),
    ("velocity", ("qfrc_bias",)),
    ("actuation", ("ctrl", "act_dot", "actuator_force", "qfrc_actuator")),
    ("smooth", ("qfrc_smooth", "qacc_smooth")),
    ("solution", ("iterations", "efc_state", "efc_force", "qfrc_constraint", "qacc")),
    ("integration", ("qpos", "qvel", "act")),
)
IN_ORDER = tuple((stage, field) for stage, fields in STAGES for field in fields)

CONTACT = {"pair": 2, "dist": 1, "pos": 3, "frame": 9, "includemargin": 1, "friction": 5, "solref": 2, "solimp": 5}
"""Of one contact, how many entries each of its fields has. The pair are the numbers of its two geoms."""

ENTRIES = {
    "body": ("xpos", "xquat", "xipos", "subtree_com", "cinert", "crb", "cvel"),
    "joint": ("xanchor", "xaxis"),
    "geom": ("geom_xpos", "geom_xmat"),
    "site": ("site_xpos", "site_xmat"),
    "tendon": ("ten_length", "ten_velocity"),
    "actuator": ("actuator_length", "actuator_velocity", "ctrl", "actuator_force"),
    "dof": (
        "cdof", "mass", "qLDiagInv", "cdof_dot", "qfrc_passive", "qfrc_bias", "qfrc_actuator", "qfrc_smooth",
        "qacc_smooth", "qfrc_constraint", "qacc", "qvel",
    ),
    "qpos": ("qpos",),
}  # fmt: skip
"""What the entries of a field are, where they are objects that have names."""

DISCRETE = ("ncon", "pair", "ne", "nf", "nl", "nefc", "efc_type", "efc_id", "iterations", "efc_state")
"""Counts, numbers of objects and kinds: where only these differ, nothing that is computed from them does."""

CONSTRAINT = "efc_"
"""How the fields of constraints begin: each has a line for every constraint that is active."""

_CALLED = {"efc_diagApprox": "efc_diagA"}  # what some are called from mujoco 3.10 on
_NUMBERS = ("ncon", "ne", "nf", "nl", "nefc", "nisland", "solver_iter")
_ITERATIONS = "solver_niter"  # for each island, from mujoco 3 on; solver_iter before
_SAME_PLACE = 6  # decimals, of metres: contacts nearer than this are in no order that another release would keep


class Reading:
    """What was read at one substep: a line for each row, and blocks of lines for the rows that have any."""

    def __init__(self, rows, reader):
        self.fixed = np.full((rows, reader.width), np.nan)
        self.numbers = np.zeros((rows, reader.count), dtype=np.int64)
        self.contacts, self.constraints = [], []


class Reader:
    """Reads data in which everything has been computed.

    Most fields are views of the simulator's memory that stay where they are, and are read in one go. Contacts and
    constraints come and go; they are kept as they are, and put in order when all have been read.
    """

    def __init__(self, mujoco, model, data):
        self._data, self._width = data, model.nv
        self._mass = np.zeros((model.nv, model.nv))
        self._fill_mass = _mass_filler(mujoco, model, data, self._mass)
        self._sparse = bool(mujoco.mj_isSparse(model))
        self._first_contact = int(mujoco.mjtConstraint.mjCNSTR_CONTACT_FRICTIONLESS)
        fixed = self._fixed()
        self._shapes = {field: view.shape for field, view in fixed.items()}
        self._views = [view.reshape(-1) for view in fixed.values()]
        self.width = sum(map(len, self._views))
        self._numbers = [name for name in _NUMBERS if hasattr(data, name)]
        self.count = len(self._numbers)
        called = {field: field if hasattr(data, field) else _CALLED.get(field, field) for _, field in IN_ORDER}
        called = {field: name for field, name in called.items() if name.startswith(CONSTRAINT) and hasattr(data, name)}
        self._constraint = {field: model.nv if field == "efc_J" else 1 for field in called}
        self._get_numbers, self._get_constraint = attrgetter(*self._numbers), attrgetter(*called.values())
        self._get_contact = attrgetter("geom1", "geom2", *(field for field in CONTACT if field != "pair"))

    def read(self, reading, row):
        """Read everything, for a row."""
        data = self._data
        self._fill_mass()
        np.concatenate(self._views, out=reading.fixed[row])
        reading.numbers[row] = self._get_numbers(data)
        if data.ncon:
            reading.contacts.append(_block(self._get_contact(data.contact), data.ncon))
        if data.nefc:
            reading.constraints.append(_block(self._constraints(), data.nefc))

    def parts(self, reading):
        """The fields by name, each with an entry for every row."""
        split = np.split(reading.fixed, np.cumsum([len(view) for view in self._views]), axis=1)
        fixed = zip(self._shapes.items(), split)
        parts = {field: part.reshape((len(part),) + shape) for (field, shape), part in fixed}
        parts.update(zip(self._numbers, reading.numbers.T))
        parts["iterations"] = _iterations(parts)
        contacts, ranks = _sorted_contacts(reading.contacts, parts["ncon"])
        parts.update(_columns(contacts, parts["ncon"], CONTACT))
        constraints = self._sorted_constraints(reading.constraints, parts["nefc"], parts["ncon"], ranks)
        parts.update(_columns(constraints, parts["nefc"], self._constraint))
        return parts

    def _fixed(self):
        wanted = [field for stage, field in IN_ORDER if stage != "integration" and not field.startswith(CONSTRAINT)]
        views = {field: getattr(self._data, field, None) for field in [*wanted, _ITERATIONS]}
        views["mass"] = self._mass
        return {field: view for field, view in views.items() if isinstance(view, np.ndarray) and view.size}

    def _constraints(self):
        found = self._get_constraint(self._data)
        if not self._sparse:
            return found
        full = _written_out(self._data, self._width)
        return [full if field == "efc_J" else values for field, values in zip(self._constraint, found)]

    def _sorted_constraints(self, blocks, counts, contacts, ranks):
        """By type and by what they constrain. Those of contacts follow the order in which contacts were put."""
        lines = np.concatenate(blocks) if blocks else np.zeros((0, sum(self._constraint.values())))
        owner = np.repeat(np.arange(len(counts)), counts)
        kind, which = lines[:, 0], lines[:, 1]
        touching = kind >= self._first_contact
        first = (np.cumsum(contacts) - contacts)[owner[touching]]
        which[touching] = ranks[first + which[touching].astype(np.int64)]
        return lines[np.lexsort((which, kind, owner))]


def _mass_filler(mujoco, model, data, mass):
    """Return what writes the mass matrix out: releases from 3.10 on take it out of the data themselves."""
    try:
        mujoco.mj_fullM(model, mass, data.qM)
    except (AttributeError, TypeError):
        return lambda: mujoco.mj_fullM(model, data, mass)
    return lambda: mujoco.mj_fullM(model, mass, data.qM)


def _iterations(parts):
    """Of the solver, in all islands; without islands there is one."""
    if _ITERATIONS not in parts:
        return parts["solver_iter"]
    counted = parts[_ITERATIONS]
    islands = np.arange(counted.shape[1]) < np.maximum(parts["nisland"], 1)[:, None]
    return np.where(islands, counted, 0).sum(axis=1).astype(np.int64)


def _block(fields, count):
    """Fields side by side, a line for each contact or constraint."""
    return np.concatenate([values.reshape(count, -1) for values in fields], axis=1)


def _sorted_contacts(blocks, counts):
    """All contacts by row, pair and place, and at which place of its row each one has come to stand."""
    lines = np.concatenate(blocks) if blocks else np.zeros((0, sum(CONTACT.values())))
    owner = np.repeat(np.arange(len(counts)), counts)
    place = np.round(lines[:, 3:6], _SAME_PLACE)
    order = np.lexsort((place[:, 2], place[:, 1], place[:, 0], lines[:, 1], lines[:, 0], owner))
    ranks = np.empty(len(lines), dtype=np.int64)
    ranks[order] = _within(counts)
    return lines[order], ranks


def _within(counts):
    """Of lines below each other, as many for each row as it has: the number of each within its row."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _columns(lines, counts, widths):
    """The fields of lines, with the lines of each row side by side; not a number where it has fewer than others."""
    spread = np.full((len(counts), counts.max(initial=0), lines.shape[1]), np.nan)
    spread[np.repeat(np.arange(len(counts)), counts), _within(counts)] = lines
    split = np.split(spread, np.cumsum(list(widths.values())), axis=2)
    return {field: part[..., 0] if width == 1 else part for (field, width), part in zip(widths.items(), split)}


def _written_out(data, width):
    """The sparse Jacobian of the constraints as a full matrix."""
    lengths = data.efc_J_rownnz
    places = np.repeat(data.efc_J_rowadr, lengths) + _within(lengths)
    columns, values = data.efc_J_colind.reshape(-1), data.efc_J.reshape(-1)
    full = np.zeros((len(lengths), width))
    full[np.repeat(np.arange(len(lengths)), lengths), columns[places]] = values[places]
    return full
