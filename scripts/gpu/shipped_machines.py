"""The shipped GPUs that can stand in for what a probe cannot measure: caches, latencies, registers."""

import difflib
import os
import pathlib
import re

import device_access


def shipped_gpus(root):
    """Name -> description, without those on which dculab's kernels do not run."""
    machines = {}
    for path in sorted((root / "hwmodels").glob("*.yaml")):
        found = dict(re.findall(r'^(kind|isa|description): *"?(.*?)"?$', path.read_text(), flags=re.M))
        if found.get("kind") == "gpu" and not device_access.architecture_problem(found.get("isa")):
            machines[path.stem] = found["description"]
    return machines


def like_problem(name, root):
    """Why --like cannot take this name, or nothing. A file may have any name, and so may a machine in $DCULAB_DATA."""
    shipped = shipped_gpus(root)
    own = os.environ.get("DCULAB_DATA")
    files = [pathlib.Path(name or ""), *([pathlib.Path(own) / "hwmodels" / f"{name}.yaml"] if own else [])]
    if not name or name.lower() in shipped or any(path.is_file() for path in files):
        return None
    near = difflib.get_close_matches(name.lower(), shipped, n=1)
    return f"--like: no GPU called '{name}' can stand in" + (f"; did you mean '{near[0]}'? " if near else "; ") + \
           "--machines lists them"
