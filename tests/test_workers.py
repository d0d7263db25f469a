"""A real local Ray under jobs that yield faster than anybody takes, and jobs that no node can run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from audit import folders
from audit.cluster.rounds import OUTCOMES_AHEAD
from tests.conftest import running, wait_until

ROOT = Path(__file__).resolve().parent.parent
JOBS, OUTCOMES = 2, 12

# In a process of its own: what Ray leaves in the one that started it would stay for all other tests.
SCRIPT = """
import json, sys, time
from pathlib import Path
import psutil
from audit.cluster.workers import Workers
from tests.counted_jobs import CountedJob

folder = Path(sys.argv[1])
size = {"outcomes": %d, "size": 2_000_000}
jobs = [CountedJob(name=f"job{number}", folder=folder, shared=b"same", **size) for number in range(%d)]
homeless = CountedJob(name="homeless", folder=folder, outcomes=1, size=0, machine="of no class")
taken, ahead, said = 0, 0, []
with Workers(None, %d) as workers:
    for outcome in workers.run([*jobs, homeless]):
        taken += 1
        if len(outcome) < 1000:
            said.append(outcome.decode())
        else:
            assert outcome.startswith(b"same")
        time.sleep(1.0 if taken == 3 else 0.05)
        ahead = max(ahead, len(list(folder.iterdir())) - taken)
    below = {each.pid for each in psutil.Process().children(recursive=True)}
    listed = [each.info["cmdline"] or () for each in psutil.process_iter(["cmdline"]) if each.pid in below]
    commands = [word for each in listed for word in each]
parts = sorted({Path(word).name for word in commands if "/site-packages/ray/" in word and not word.startswith("-")})
print(json.dumps({"taken": taken, "ahead": ahead, "said": said, "parts": parts}))
"""


def run_apart(script: str, folder: Path, environment: dict[str, str]) -> dict[str, Any]:
    """What the script says on its last line."""
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> dict[str, Any]:
    return run_apart(SCRIPT % (OUTCOMES, JOBS, JOBS), tmp_path_factory.mktemp("marks"), environment)


def test_every_outcome_comes_in(told: dict[str, Any]) -> None:
    assert told["taken"] == JOBS * OUTCOMES + 1


def test_jobs_wait_for_whoever_takes_what_they_yield(told: dict[str, Any]) -> None:
    """Each has at most so many outcomes lying in the object store, and one at hand that is not yielded yet."""
    assert told["ahead"] <= JOBS * (OUTCOMES_AHEAD + 1)


def test_a_job_without_a_node_is_told(told: dict[str, Any]) -> None:
    assert told["said"] == ["this machine is not of the class of no class"]


def test_a_local_ray_starts_only_what_runs_jobs(told: dict[str, Any]) -> None:
    """Its two agents take names of their own once they are there. Another Python would have to start in every audit."""
    assert set(told["parts"]) - {"agent.py", "main.py"} == {"gcs_server", "raylet"}


# A cluster whose one node has three cores, of which others have two: for most of the time, and then only one.
BUSY = """
import json, sys, time
from pathlib import Path
import ray
import ray.util.scheduling_strategies
from audit.cluster import crew, questions, rounds
from audit.cluster.head_start import HeadStart
from audit.cluster.workers import _Worker
from collections import deque
from concurrent.futures import Future
from tests.counted_jobs import CountedJob

folder = Path(sys.argv[1])
questions.SILENT_SECONDS = rounds.LOOK_FOR_NODES_SECONDS = 2.0
ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, object_store_memory=100_000_000)
Other = ray.remote(num_cpus=1)(type("Other", (), {"ready": lambda self: True}))
others = [Other.remote(), Other.remote()]
ray.get([each.ready.remote() for each in others])
sentences = []
hired = crew.Crew(ray, _Worker, most=None, here=None, tell=sentences.append, part=("run", False))

def outcomes(count):
    jobs = [CountedJob(name=f"{count}.{number}", folder=folder, outcomes=1, size=1) for number in range(count)]
    early = HeadStart(deque(), Future(), spare=0)
    return len(list(rounds.Round(hired, jobs, early).outcomes()))

def at_hand():
    (node,) = hired.at_hand()
    return [node.slots, len(hired._hands), len(hired._idle[node.name])]

def until(slots):
    deadline, came = time.monotonic() + 300, outcomes(4)
    while at_hand()[0] != slots and time.monotonic() < deadline:
        came = outcomes(4)
        time.sleep(0.1)
    return came, at_hand()

one = until(1)
ray.kill(others.pop())
two = until(2)
print(json.dumps({"one": one, "two": two, "sentences": sentences}))
hired.end()
"""


def test_no_job_waits_for_an_actor_that_never_starts(tmp_path: Path, environment: dict[str, str]) -> None:
    """There are as many actors as cores, of which those are counted on that have started; it is told once."""
    found = run_apart(BUSY, tmp_path, environment)
    assert found["one"] == [4, [1, 3, 1]]
    assert found["two"] == [4, [2, 3, 2]]
    told = [each for each in found["sentences"] if not each.startswith("waiting up to ")]  # a slow machine also waits
    assert len(told) == 1
    assert told[0].endswith(" works on fewer than its 3 cores: others may keep some busy")


# What the first job was sent is lost: where an owner is dead, Ray says so after most of a minute, so that the job says
# it here. Memory runs out in the second; the third finds a mistake of ours.
LOST = """
import json, sys
from pathlib import Path
import ray
from audit.cluster.workers import Workers
from tests.counted_jobs import CountedJob

size = {"folder": Path(sys.argv[1]), "outcomes": 1, "size": 0}
gone = ray.exceptions.OwnerDiedError("00" * 28, "", "")
with Workers(None, 2) as workers:
    lost = CountedJob(name="lost", error=gone, **size)
    eaten = CountedJob(name="eaten", error=MemoryError("no room for an array"), **size)
    said = sorted(outcome.decode() for outcome in workers.run([lost, eaten]))
    try:
        list(workers.run([CountedJob(name="mistaken", error=KeyError("ours"), **size)]))
    except KeyError as error:
        said.append(str(error))
print(json.dumps({"said": said}))
"""


def test_what_a_worker_could_not_get_is_lost_and_a_mistake_is_raised(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    lost, eaten, mistaken = run_apart(LOST, tmp_path, environment)["said"]
    assert lost.startswith("the worker was lost 2 times: Failed to retrieve object")
    assert eaten == "the worker was lost 2 times: no room for an array"
    assert "ours" in mistaken


def test_everything_below_a_process_is_ended_wherever_it_went(tmp_path: Path) -> None:
    """A grandchild in a session of its own, whose parent is alive."""
    script = f"""
import subprocess, sys, time
from pathlib import Path
from audit.cluster import descendants
middle = "import subprocess, time; p = subprocess.Popen(['sleep', '600'], start_new_session=True); " + (
    "open({str(tmp_path / "pid")!r}, 'w').write(str(p.pid)); time.sleep(600)")
subprocess.Popen([sys.executable, "-c", middle])
while not Path({str(tmp_path / "pid")!r}).is_file() or not Path({str(tmp_path / "pid")!r}).read_text():
    time.sleep(0.01)
assert len(descendants.below(__import__("os").getpid())) == 2
descendants.end_all()
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300, cwd=folders.ROOT)
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not running(pid), "the grandchild ended")
