"""A real local Ray under jobs that yield faster than anybody takes, and jobs that no node can run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

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
print(json.dumps({"taken": taken, "ahead": ahead, "said": said}))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("marks")
    script = SCRIPT % (OUTCOMES, JOBS, JOBS)
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_every_outcome_comes_in(told: dict[str, object]) -> None:
    assert told["taken"] == JOBS * OUTCOMES + 1


def test_jobs_wait_for_whoever_takes_what_they_yield(told: dict[str, object]) -> None:
    """Each has at most so many outcomes lying in the object store, and one at hand that is not yielded yet."""
    assert int(str(told["ahead"])) <= JOBS * (OUTCOMES_AHEAD + 1)


def test_a_job_without_a_node_is_told(told: dict[str, object]) -> None:
    assert told["said"] == ["this machine is not of the class of no class"]


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
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, cwd=folders.ROOT)
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not running(pid), "the grandchild ended")
