"""A simulator with the interface of MuJoCo's bindings, for tests of what watches it: points that fall on a floor."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

POINTS = 2
TIME_STEP = 0.1


class Model:
    """Each point is a joint with a motor."""

    nv = nq = njnt = nu = POINTS
    nbody = ngeom = POINTS + 1
    na = nsite = ntendon = 0
    jnt_dofadr = jnt_qposadr = np.arange(POINTS, dtype=np.int32)
    opt = SimpleNamespace(integrator=0)


class Data:
    """What is computed stays where it is, but for contacts and constraints."""

    def __init__(self, model: Any) -> None:
        self.qpos, self.qvel, self.act = np.ones(POINTS), np.zeros(POINTS), np.zeros(0)
        self.ctrl, self.qacc, self.qacc_warmstart = np.zeros(POINTS), np.zeros(POINTS), np.zeros(POINTS)
        self.time = 0.0
        self.xpos = np.zeros((POINTS + 1, 3))
        self.qM = np.ones(POINTS)
        self.solver_niter, self.nisland = np.zeros(20, np.int32), 0
        self.ne = self.nf = self.nl = self.ncon = self.nefc = 0
        self.below: Any = np.zeros(0, np.int64)

    @property
    def contact(self) -> Any:
        """The lowest point first: another order than that of the geoms."""
        count = len(self.below)
        fields = {"frame": 9, "friction": 5, "solref": 2, "solimp": 5}
        return SimpleNamespace(
            geom1=np.zeros(count, np.int32),
            geom2=(self.below + 1).astype(np.int32),
            dist=self.qpos[self.below],
            pos=np.stack([self.qpos[self.below]] * 3, axis=1),
            includemargin=np.zeros(count),
            **{name: np.zeros((count, width)) for name, width in fields.items()},
        )

    @property
    def efc_type(self) -> Any:
        return np.full(self.nefc, 5, np.int32)

    @property
    def efc_id(self) -> Any:
        return np.arange(self.nefc, dtype=np.int32)

    @property
    def efc_J(self) -> Any:  # noqa: N802
        return np.eye(POINTS)[self.below].ravel()

    @property
    def efc_pos(self) -> Any:
        return self.qpos[self.below]


def forward(data: Data, *, solved: float = 1.0) -> None:
    data.below = np.argsort(data.qpos, kind="stable")[: int((data.qpos < 0).sum())]
    data.ncon = data.nefc = len(data.below)
    data.xpos[1:] = data.qpos[:, None]
    data.solver_niter[0] = 1 + data.ncon
    data.qacc[:] = data.ctrl - 10.0 * solved - 0.01 * data.qacc_warmstart
    data.qacc[data.below] += 50.0


def simulator(**changes: Any) -> SimpleNamespace:
    """The module."""

    def mj_forwardSkip(m: Any, d: Data, skipstage: int, skipsensor: int) -> None:  # noqa: N802
        assert (skipstage, skipsensor) == (0, 1)
        forward(d)

    def substep(d: Data) -> None:
        forward(d)
        d.qvel += TIME_STEP * d.qacc
        d.qpos += TIME_STEP * d.qvel
        d.qacc_warmstart[:] = d.qacc
        d.time += TIME_STEP

    def mj_step(m: Any, d: Data, nstep: int = 1) -> None:
        for _ in range(nstep):
            substep(d)

    def mj_step2(m: Any, d: Data) -> None:
        substep(d)

    def mj_fullM(m: Any, dst: Any, M: Any) -> None:  # noqa: N802, N803
        dst[:] = np.diag(M)

    functions = {each.__name__: each for each in (mj_forwardSkip, mj_step, mj_step2, mj_fullM)}
    return SimpleNamespace(
        **{
            **functions,
            "MjData": Data,
            "mj_isSparse": lambda m: 0,
            "mjtConstraint": SimpleNamespace(mjCNSTR_CONTACT_FRICTIONLESS=5),
            "mjtIntegrator": SimpleNamespace(mjINT_RK4=1),
            **changes,
        }
    )


class Physics:
    """Knows what the bodies and joints of a small model are called."""

    def name(self, kind: str, index: int) -> str:
        return f"{kind}{index}"
