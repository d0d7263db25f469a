"""Entry point: ``python -I -S confine/__main__.py OPTION=VALUE… -- COMMAND…``."""

import os
import sys

if __name__ == "__main__":
    # Last, so that it can shadow nothing of the standard library.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from confine.supervising import run

    run(sys.argv[1:])
