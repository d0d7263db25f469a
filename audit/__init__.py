"""The orchestrator: from a matrix of releases to verdicts in a database."""

import os

# Work is spread over processes. Within one, threads of a numerical library only take cores from the others, and two
# threads that each start some come to a standstill while Ray forks. It counts from the first import of numpy on.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.1.0"
