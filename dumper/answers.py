"""The file that answers one cell: arrays and a JSON description in an uncompressed npz, written once, whole."""

import json
import os

import numpy as np

FORMAT = 1


class Answer:
    """What became of one cell: ``ok``, ``unavailable``, ``incomparable`` or ``failed``, with arrays when ``ok``."""

    def __init__(self, status, reason, arrays=None, meta=None, detail=""):
        self.status = status
        self.reason = reason
        self.arrays = arrays or {}
        self.meta = meta or {}
        self.detail = detail


def write(path, environment, answer):
    """Write the answer about ``environment`` under a temporary name in the same folder, then rename.

    A half-written answer never bears the name.
    """
    head = dict(answer.meta, format=FORMAT, status=answer.status, reason=answer.reason, detail=answer.detail)
    head.update(environment=environment, arrays=sorted(answer.arrays))
    text = json.dumps(head, sort_keys=True, default=str).encode("utf-8")
    temporary = "%s.%d.tmp" % (path, os.getpid())
    with open(temporary, "wb") as file:
        np.savez(file, meta=np.frombuffer(text, dtype=np.uint8), **answer.arrays)
    os.replace(temporary, path)
