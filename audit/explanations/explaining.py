"""The explaining stage: in which stage of a step does a changed pair part, and which constants differ?

The states at which the two are beyond the yardstick are known. Both releases take those steps once more and tell what
they computed on the way, twice, because what does not reproduce itself explains nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import anatomy, columns, growth, stages
from analysis.anatomy import Anatomy, ConstantDifference
from analysis.stages import Difference, Staged
from audit.comparisons.parting import RUN_UP
from audit.digests import digest
from audit.explanations import examining
from audit.explanations.examining import ANATOMY, STAGES, Question
from audit.failures import Failure, Status
from audit.planning.plan import Cell
from audit.stimuli import stimulus
from audit.stimuli.stimulus import Batch
from audit.storage.records import Examination, ExplanationRecord
from audit.storage.store import Store
from audit.tools import Tools

RULE = "explained-7"
"""Changes when the same examinations would be read otherwise, or their scripts lie elsewhere."""

EXAMINED = 16
"""States whose steps are looked into; a change that acts in hundreds acts in these alike."""

NUDGES = 4

MOST_CONSTANTS = 8
"""That are told; all are kept."""

UNANSWERED = ""
"""Key of an explanation for which a release left an answer out: it is looked into again by the next run."""

PARTED, LEAST = 1e-10, 1e-16
"""Trajectories this far apart have parted; what they were apart before counts from here on."""

_CONSTANT = "constant."

Answer = Examination | Failure
"""What a release answered, or why it did not."""

_AFTER_EVALUATIONS = ("integration", "outputs")
"""Stages that may be the first because something before them was not looked into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPair:
    """Two releases that differ on an environment, and the forced states at which they do."""

    older: Cell
    newer: Cell
    older_behaviour: str
    newer_behaviour: str
    states: NDArray[np.float64]
    actions: NDArray[Any]
    """One or more for each state: the step of the last is looked into, the others lead up to it."""

    @property
    def given(self) -> bytes:
        """The states with copies of them, nudged by one last place; nothing where there is no state to look at."""
        if not len(self.states):
            return b""
        batch = Batch(starts=self.states, actions=self.actions)
        copies = stimulus.nudged(batch, NUDGES, 0)
        actions = np.concatenate([batch.actions, copies.actions])
        arrays = {"states": np.concatenate([batch.starts, copies.starts]), "actions": actions[:, -1]}
        return stimulus.packed(arrays | ({"run_up": actions[:, :-1]} if actions.shape[1] > 1 else {}))

    @property
    def questions(self) -> list[Question]:
        """What the two releases are asked."""
        return examining.both((self.older, self.newer), self.given)

    @property
    def key(self) -> str:
        """Everything that decides the explanation."""
        return digest(RULE, *(each.key for each in self.questions))


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a pair differs."""

    record: ExplanationRecord
    constants: tuple[ConstantDifference, ...]
    stages: tuple[Difference, ...]

    @property
    def lines(self) -> list[str]:
        """In words, for somebody who has to be shown."""
        record = self.record
        told = [record.interface] if record.interface else []
        if record.stage:
            told.append(f"{record.stage}: {record.fields} (in {record.states} states looked into)")
        changed = [each.told for each in self.constants if each.kind is anatomy.Kind.CHANGED]
        told += [f"constant that differs, whether or not it acts here: {each}" for each in changed[:MOST_CONSTANTS]]
        return told + ([f"not looked into: {record.reason}"] if record.reason else [])


def pair(store: Store, older: Cell, newer: Cell, behaviours: tuple[str, str], beyond: Sequence[int]) -> ChangedPair:
    """A changed pair with some of the states that show it, evenly out of all of them.

    Where no forced state does, because it takes a warm solver, those shortly before its trajectories part.
    """
    given = store.stimulus_of(behaviours[0])
    chosen = np.array(beyond, dtype=np.int64)
    if len(chosen) > EXAMINED:
        chosen = chosen[np.linspace(0, len(chosen) - 1, EXAMINED).astype(np.int64)]
    if "forced.states" in given and len(chosen):
        states, actions = given["forced.states"][chosen], given["forced.actions"][chosen]
    else:
        states, actions = _before_parting(store, behaviours, given)
    return ChangedPair(
        older=older,
        newer=newer,
        older_behaviour=behaviours[0],
        newer_behaviour=behaviours[1],
        states=states,
        actions=actions,
    )


def _before_parting(
    store: Store, behaviours: tuple[str, str], given: Mapping[str, NDArray[Any]]
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """A state of each trajectory a few steps before its largest jump apart, with the actions up to and over it."""
    outputs = [store.outputs(behaviour).get("horizon.state") for behaviour in behaviours]
    nothing = np.empty((0, 0)), np.empty((0, 1))
    if any(one is None for one in outputs) or "horizon.states" not in given or "forced.states" not in given:
        return nothing
    older, newer = (store.arrays.get(one.digest) for one in outputs if one is not None)
    if older.shape != newer.shape:
        return nothing
    apart = growth.curves(older, newer)
    before = np.concatenate([np.zeros((len(apart), 1)), apart[:, :-1]], axis=1)
    jumps = np.divide(apart, before + LEAST, out=np.zeros_like(apart), where=(apart > PARTED) & np.isfinite(before))
    steps = np.argmax(jumps, axis=1)
    chosen = [each for each in range(len(apart)) if apart[each, steps[each]] > PARTED and steps[each] >= RUN_UP + 1]
    if not chosen:
        return nothing
    states = np.array([older[each, steps[each] - RUN_UP - 1] for each in chosen])
    actions = np.array([given["horizon.actions"][each, steps[each] - RUN_UP : steps[each] + 1] for each in chosen])
    return states, actions


def explain(pairs: Sequence[ChangedPair], tools: Tools, show: Callable[[Explanation], object]) -> tuple[Failure, ...]:
    """Examine both releases of every pair that is not explained yet; show and keep what comes of it.

    Each is shown before it is kept: who is interrupted in between has it shown again, and not forgotten. Returned is
    what the machine left unanswered. What the releases answered is read pair by pair, as all of it may be large.
    """
    missing = _missing(pairs, tools)
    asked = {question.key: question for each in missing for question in each.questions}
    failed = examining.examine(list(asked.values()), tools)
    for each in missing:
        keys = [question.key for question in each.questions]
        found = {key: failed.get(key) or tools.store.explanations.examination(key) for key in keys}
        answers = {key: answer for key, answer in found.items() if answer is not None}
        explanation = _explained(each, answers, _interface(each, tools.store))
        show(explanation)
        answered = all(isinstance(answer, Examination) for answer in found.values())
        record = explanation.record if answered else replace(explanation.record, key=UNANSWERED)
        tools.store.explanations.put_explanation(record, explanation.constants, explanation.stages)
    return tuple(dict.fromkeys(each for each in failed.values() if each.is_infrastructure))


def _missing(pairs: Sequence[ChangedPair], tools: Tools) -> list[ChangedPair]:
    """Those that are not explained, and those of which a release is asked again what it raised at."""
    known, examined = tools.store.explanations.explained(), tools.store.explanations.examined
    return [
        each
        for each in pairs
        if known.get(_behaviours(each)) != each.key
        or (tools.again and any(examined(question.key) is Status.RAISED for question in each.questions))
    ]


def _interface(each: ChangedPair, store: Store) -> str:
    """What became of the entries of an observation, where there are more or fewer of them, or all are elsewhere."""
    outputs = [store.outputs(behaviour).get("forced.observation") for behaviour in _behaviours(each)]
    if any(one is None for one in outputs):
        return ""
    older, newer = (store.arrays.get(one.digest) for one in outputs if one is not None)
    if len(older) != len(newer):
        return ""  # tables of other transitions, which nothing tells to belong together
    flat = tuple(each.reshape(len(each), math.prod(each.shape[1:])) for each in (older, newer))  # there may be none
    told = columns.told(*flat)
    if flat[0].shape == flat[1].shape and not columns.permuted(*flat):
        return ""  # entries of other values are no change of the interface
    return f"the observation's {told}" if told.startswith("entr") else f"the observation {told}" if told else ""


def _behaviours(each: ChangedPair) -> tuple[str, str]:
    return each.older_behaviour, each.newer_behaviour


def _explained(each: ChangedPair, answers: Mapping[str, Answer], interface: str) -> Explanation:
    reasons: list[str] = []
    constants = _constants(each, answers, reasons)
    looked = _stages(each, answers, reasons)
    differences, unsteady, order = looked.differences, looked.unsteady, looked.order
    first = stages.first_stage(differences)
    if looked.unseen and first and first[0].stage.startswith(_AFTER_EVALUATIONS):
        reasons.append(looked.unseen)
    return Explanation(
        record=ExplanationRecord(
            older_behaviour=each.older_behaviour,
            newer_behaviour=each.newer_behaviour,
            environment=each.older.environment.title,
            key=each.key,
            states=len(each.states),
            stage=first[0].stage if first else "",
            fields=_fields(first, differences),
            before=stages.before(order, first[0].stage) if first else [],
            ratio=first[0].ratio if first else None,
            interface=interface,
            constants=sum(difference.kind is anatomy.Kind.CHANGED for difference in constants),
            unsteady=sorted(unsteady),
            reason="; ".join(dict.fromkeys(reasons)),
        ),
        constants=tuple(constants),
        stages=tuple(differences),
    )


def _constants(each: ChangedPair, answers: Mapping[str, Answer], reasons: list[str]) -> list[ConstantDifference]:
    found = [_answer(Question(cell=cell, task=ANATOMY), answers, reasons) for cell in (each.older, each.newer)]
    older, newer = (_anatomy(one) if one is not None else None for one in found)
    return anatomy.differences(older, newer) if older is not None and newer is not None else []


def _anatomy(answer: Examination) -> Anatomy:
    return Anatomy(
        arrays={name.removeprefix(_CONSTANT): array for name, array in answer.arrays.items()},
        names=answer.meta["names"],
        texts=answer.meta["texts"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _StageComparison:
    """What differs, what does not reproduce itself, all that was compared in its order, and what was not."""

    differences: Sequence[Difference] = ()
    unsteady: Collection[str] = ()
    order: Sequence[str] = ()
    unseen: str = ""


def _stages(each: ChangedPair, answers: Mapping[str, Answer], reasons: list[str]) -> _StageComparison:
    if not len(each.states):
        reasons.append("no step shows it: it is in resets or spaces")
        return _StageComparison()
    asked = [
        [Question(cell=cell, task=STAGES, given=each.given, again=again) for again in (False, True)]
        for cell in (each.older, each.newer)
    ]
    found = [[_answer(question, answers, reasons) for question in side] for side in asked]
    read = [[_staged(one) for one in side if one is not None] for side in found]
    if any(len(side) < 2 for side in read):
        return _StageComparison()
    unseen = next((one.meta["unseen"] for side in found for one in side if one and one.meta["unseen"]), "")
    unsteady = {name for first, again in read for name in stages.unsteady(first, again)}
    older, newer = (side[0] for side in read)
    differences = stages.differences(older, newer, len(each.states), unsteady)
    order = stages.compared(older, newer, unsteady)
    return _StageComparison(differences=differences, unsteady=unsteady, order=order, unseen=unseen)


def _fields(first: Sequence[Difference], all_of_them: Sequence[Difference]) -> str:
    """In words: the fields of the first stage that differs, and counts that differ before it, or alone."""
    told = ", ".join(each.told for each in first)
    counts = stages.only_counts(all_of_them)
    if first and first[0] in counts:
        return f"{told}: nothing but counts, and nothing that is computed from them differs"
    before = [each for each in counts if each.place < first[0].place] if first else []
    if not before:
        return told
    names = ", ".join(dict.fromkeys(f"{each.told} in {each.stage}" for each in before))
    return f"{told} (before it only counts differ, without an effect: {names})"


def _staged(answer: Examination) -> Staged:
    return Staged(
        arrays=answer.arrays,
        order=answer.meta["order"],
        dtypes=answer.meta.get("dtypes", {}),
        discrete=frozenset(answer.meta["discrete"]),
    )


def _answer(question: Question, answers: Mapping[str, Answer], reasons: list[str]) -> Examination | None:
    """What was answered, where it was; otherwise the reason is noted."""
    found = answers.get(question.key)
    if found is None:
        reasons.append(f"{question.identifier} left no answer")
        return None
    if isinstance(found, Failure) or found.status is not Status.OK:
        reasons.append(f"{question.identifier}: {found.status}: {found.reason}")
        return None
    return found
