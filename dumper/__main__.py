"""Entry point: ``python -I dumper/__main__.py REQUEST.json``, started by the orchestrator inside a release's venv."""

import importlib.util
import os
import sys


def _load_package():
    """Register this folder as the package ``dumper`` without putting it, or its parent, on ``sys.path``.

    Anything on the path could shadow a module that the audited release imports.
    """
    folder = os.path.dirname(os.path.abspath(__file__))
    spec = importlib.util.spec_from_file_location(
        "dumper", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules["dumper"] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    _load_package()
    from dumper.serve import serve

    sys.exit(serve(sys.argv[1]))
