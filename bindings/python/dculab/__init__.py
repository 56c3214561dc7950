"""How fast will this LLM run on that machine, and what holds it back?

>>> import dculab
>>> answer = dculab.predict(model="llama-3-8b", machine="k100-ai", batch=16, context=4096)
>>> answer.step_seconds, answer.ops[0].bound
>>> print(answer)  # what `dculab predict` prints

Answers are frozen dataclasses (`dculab.answers`). `json` is what the program writes, byte for byte; lists of rows and
answers have `to_pandas()`. What is wrong with a question is an `InputError`.
"""

import importlib.metadata
import pathlib

from dculab import _dculab

_dculab.set_shipped_data(pathlib.Path(__file__).parent / "data")

from dculab._dculab import InputError  # noqa: E402
from dculab._measurements import calibrate, validate  # noqa: E402
from dculab._rows import Interval, Rows  # noqa: E402
from dculab._serving import recommend, simulate, study  # noqa: E402
from dculab._steps import diagnose, footprint, intensity, predict, show  # noqa: E402
from dculab._things import Machine, Model, Stack, machines, models, scenarios, stacks  # noqa: E402

__version__ = importlib.metadata.version("dculab")

__all__ = [
    "InputError",
    "Interval",
    "Machine",
    "Model",
    "Rows",
    "Stack",
    "calibrate",
    "diagnose",
    "footprint",
    "intensity",
    "machines",
    "models",
    "predict",
    "recommend",
    "scenarios",
    "show",
    "simulate",
    "stacks",
    "study",
    "validate",
]
