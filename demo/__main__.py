"""Start a cluster of three nodes on this machine, run an audit on it, show which node did what, take it down again."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from demo.nodes import Nodes

NODES = 3


def main() -> int:
    """Run the demonstration; return the audit's exit code."""
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("matrix", nargs="?", default="smoke.yaml")
    parser.add_argument("--db", type=Path, default=Path("results/cluster-demo.duckdb"))
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin with it ignored
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    database = arguments.db.absolute()
    database.parent.mkdir(parents=True, exist_ok=True)
    database.unlink(missing_ok=True)
    with Nodes() as nodes:
        nodes.start_several(NODES)
        for member in nodes.members:
            sys.stdout.write(f"{member.name} at {member.address}, with its files in {member.folder}\n")
        sys.stdout.flush()
        command = [sys.executable, "-m", "audit", "run", arguments.matrix, "--db", str(database)]
        audit = nodes.call(nodes.members[0], [*command, "--address", nodes.address], Path.cwd())
        try:
            return audit.wait()
        except BaseException:
            # From here on everything is taken down; being asked once more would only leave something behind.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            audit.kill()
            audit.wait()
            raise


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
