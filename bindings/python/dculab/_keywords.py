"""What the program's questions need of Python values: texts, files and the settings of things."""

from __future__ import annotations

import builtins
import contextlib
import json
import os
import pathlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Union

from dculab._things import PathLike

# Keys of a scenario with other values: {"deployment.tensor_parallel_size": 2}, or ["deployment.tensor_parallel_size=2"]
Settings = Union[Mapping[str, object], Iterable[str], None]
# A file, a name under scenarios, or what a scenario file has, as a mapping.
ScenarioLike = Union[str, "os.PathLike[str]", Mapping[str, Any]]


def texts(settings: Settings) -> list[str]:
    if settings is None:
        return []
    if isinstance(settings, str):
        return [settings]
    if isinstance(settings, Mapping):
        return [f"{key}={_value(value)}" for key, value in settings.items()]
    return list(settings)


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def several(values: Any) -> list[Any]:
    if values is None:
        return []
    if isinstance(values, (str, os.PathLike, Mapping)) or not isinstance(values, Iterable):
        return [values]
    return list(values)


def file_names(files: PathLike | Sequence[PathLike] | None) -> list[str] | None:
    return None if files is None else [os.fspath(file) for file in several(files)]


def file_name(file: PathLike | None) -> str | None:
    return None if file is None else os.fspath(file)


@contextlib.contextmanager
def scenario_files(scenarios: ScenarioLike | Sequence[ScenarioLike] | None) -> Iterator[list[str]]:
    """Files of all of them: JSON is YAML."""
    with tempfile.TemporaryDirectory(prefix="dculab-") as folder:
        files = []
        for number, scenario in enumerate(several(scenarios)):
            if isinstance(scenario, Mapping):
                file = pathlib.Path(folder, f"scenario-{number}.yaml")
                file.write_text(json.dumps({"schema": "dculab/scenario/1", **scenario}), encoding="utf-8")
                scenario = file
            files.append(os.fspath(scenario))
        yield files


class Named:
    """What a question names, with what is changed of it as settings."""

    def __init__(self, settings: Settings):
        self.settings = texts(settings)
        self.keywords: dict[str, Any] = {}
        self._kept: builtins.list[Any] = []  # folders of models are there until the answer is

    def add(self, key: str, thing: Any) -> None:
        self._kept.append(thing)
        self.settings += thing._settings()
        self.keywords[key] = thing.name

    def all(self) -> dict[str, Any]:
        return {**self.keywords, "set": self.settings}
