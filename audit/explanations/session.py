"""One environment on one release after the other, each held against the first; what was dumped before is not again.

Searches ask one question at a time and the next depends on its answer, so that jobs run here and Ray is not started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from analysis.verdicts import Judgement, Verdict
from audit import machine
from audit.asked.releases import ReleaseRequest
from audit.cluster.jobs import Job, Outcome
from audit.comparisons import comparing
from audit.dumps import dumping
from audit.errors import AuditError, IndexUnreachable, UsageError
from audit.explanations import remembered_states
from audit.explanations.between import PairQuestion
from audit.explanations.resolving import Resolver
from audit.failures import Failure, Status
from audit.installing.locks import Release
from audit.planning import drawing, plan, probing
from audit.planning.drawing import DrawnEnvironment
from audit.planning.plan import Cell, Recording
from audit.tools import Tools


class Inline:
    """Runs jobs in this process, one after the other."""

    @property
    def is_elsewhere(self) -> bool:
        """It is here."""
        return False

    def classes(self) -> Mapping[str, int]:
        """This machine."""
        return {machine.here().digest: 1}

    def prepare(self) -> None:
        """Nothing has to be started."""

    def finish(self) -> None:
        """Nothing has to be ended."""

    def run(self, jobs: Sequence[Job[Outcome]]) -> Iterator[Outcome]:
        """Yield all outcomes of every job."""
        for job in jobs:
            yield from job.run()


class Quiet:
    """Tells nobody: a search tells of its probes, not of what each of them takes."""

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Callable[[str], None]]:
        """Say nothing."""
        del name, total
        yield lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseBehaviour:
    """What a release did."""

    release: Release
    behaviour: str


class Session:
    """The environment of a question, and its older release as the one that others are held against.

    What an audit knows of the two releases is used.
    """

    def __init__(self, question: PairQuestion, tools: Tools, resolver: Resolver) -> None:
        self._question = question
        self._matrix = question.file.matrix
        self._resolver = resolver
        self.tools = replace(tools, runner=Inline(), reporter=Quiet())
        self._attached = question.attached()
        self._environment = self._matrix.environments[0]
        self._known: dict[str, ReleaseBehaviour | Failure] = {}
        self._reads = comparing.reads_of(self._matrix)
        self.reference = resolver.required(question.older)
        self._own = self._draw()
        self.drawn = self._remembered(self._own)

    def cell(self, release: Release) -> Cell:
        """The environment on a release."""
        return plan.Cell(
            release=release,
            environment=self._environment,
            position=0,
            attachment=self._attached.get(self._environment.title),
        )

    def key(self, release: Release) -> str:
        """What is asked of a release: the key under which an audit that asks the same has its dump."""
        return self.cell(release).key(self._own.stimulus)

    def show(self, request: ReleaseRequest) -> ReleaseBehaviour | Failure:
        """What a release does with the stimulus, or why that cannot be had."""
        named = self._environment.source_in(request.known_as)
        asked = f"{named} {replace(request, id='', series='', like='')!r}"  # two questions may have one name
        if asked not in self._known:
            self._known[asked] = self._shown(request)
        return self._known[asked]

    def judge(self, one: ReleaseBehaviour, other: ReleaseBehaviour) -> Judgement | None:
        """The verdict on two releases; nothing where they did the same to the last bit."""
        if one.behaviour == other.behaviour:
            return None
        pair = comparing.ordered(one.behaviour, other.behaviour)
        known = self.tools.store.comparisons.judgement(*pair, self._reads)
        if known is not None:
            return known  # an audit may have looked a second time, and know more than the forced states tell
        judgement, evidence = comparing.judged(self.tools.store, pair, self._matrix.outputs)
        self.tools.store.comparisons.put_comparison(*pair, self._reads, judgement, evidence)
        return judgement

    def changed(self, one: ReleaseBehaviour, other: ReleaseBehaviour) -> bool:
        """Whether the two are not the same but for rounding."""
        judgement = self.judge(one, other)
        return judgement is not None and judgement.verdict in (Verdict.CHANGED, Verdict.INCOMPARABLE)

    def _draw(self) -> DrawnEnvironment:
        file, baseline = self._question.file, self._resolver.required(self._question.baseline)
        cells = plan.cells(file.matrix, [baseline.request], {baseline.id: baseline}, self._attached)
        layouts = probing.probe(cells, file.matrix.baseline, self.tools)
        stimuli = drawing.draw(file, cells, layouts.known, self.tools)
        self.tools.store.put_stimuli(each.stimulus for each in stimuli.drawn.values())
        title = self._environment.title
        if title not in stimuli.drawn:
            undrawable = [failure for name, failure in stimuli.undrawable.items() if name == title]
            reasons = [*undrawable, *layouts.unbuilt.values(), *layouts.failures]
            for failure in reasons:
                _raise_if_machine(failure)
            told = reasons[0].reason if reasons else "it did not answer"
            raise UsageError(f"{baseline.id} does not offer {title}: {told}")
        return stimuli.drawn[title]

    def _remembered(self, drawn: DrawnEnvironment) -> DrawnEnvironment:
        """Besides what was drawn, the states in which an audit saw the reference differ from the other release."""
        end = self._resolver.resolve(self._question.newer)
        if self._question.audited is not None or not isinstance(end, Release):
            return drawn  # the states in which the audit saw them differ are among those that its matrix draws
        found = remembered_states.between(self.tools.store, self._environment.title, (self.reference, end))
        if found is None:
            return drawn
        extended = drawing.extended(drawn, found, self._matrix.bank)
        self.tools.store.put_stimuli([extended.stimulus])
        return extended

    def _shown(self, request: ReleaseRequest) -> ReleaseBehaviour | Failure:
        release = self._resolver.resolve(request)
        if isinstance(release, Failure):
            _raise_if_machine(release)
            return release
        recording = Recording(cell=self.cell(release), stimulus=self.drawn.stimulus)
        self.tools.store.put_locks({release.lock.digest: (release.lock.text, release.lock.packages)})
        dumps = dumping.dump([recording], {}, self.tools)
        found = dumps.dumped.get(recording.identifier)
        if found is not None and found.record.behaviour is not None:
            return ReleaseBehaviour(release=release, behaviour=found.record.behaviour)
        failures = [each for each in dumps.failures if each.subject in (release.id, recording.identifier)]
        for failure in failures:
            _raise_if_machine(failure)
        if failures:
            return failures[0]
        status, reason = (found.record.status, found.record.reason) if found else (Status.DAMAGED, "it left no dump")
        return Failure(subject=recording.identifier, stage="dump", status=status, reason=reason)


def _raise_if_machine(failure: Failure) -> None:
    """What is the machine's fault says nothing about a release, and a search must not go on with it."""
    if failure.status is Status.UNREACHABLE:
        raise IndexUnreachable.because(failure.reason)
    if failure.is_infrastructure:
        raise AuditError(f"{failure.subject}: {failure.reason}")
