"""Machines, models and stacks: what questions are about."""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, Union

from dculab import _ask, _dculab

if TYPE_CHECKING:
    from dculab.answers import ShowAnswer, Value

Self = TypeVar("Self", bound="Thing")
PathLike = Union[str, "os.PathLike[str]"]


class Thing:
    """Something that a question names: shipped, or a file of one's own, and what is changed of it."""

    _kind: ClassVar[str]  # the key of a scenario

    def __init__(self, name: PathLike, changes: Mapping[str, object] | None = None):
        self.name = os.fspath(name)
        self.changes = dict(changes or {})

    def replace(self: Self, changes: Mapping[str, object] | None = None, /, **more: object) -> Self:
        """The same with other figures, in their units: `machine.replace(clock="1550 MHz")`. Keys with dots, as `show`
        has them, come in a mapping: `machine.replace({"memory.DRAM.bandwidth": "2 TB/s"})`. Wrong ones are
        refused when a question is asked."""
        changed = object.__new__(type(self))
        changed.__dict__.update(self.__dict__)
        changed.changes = {**self.changes, **(changes or {}), **more}
        return changed

    def _settings(self) -> list[str]:
        """The changes as --set has them."""
        return [f"{self._kind}.{key}={value}" for key, value in self.changes.items()]

    def show(self) -> ShowAnswer:
        """Every effective figure, and where it came from."""
        return _ask.ask("show", what=self.name)

    @property
    def figures(self) -> Mapping[str, Value]:
        """The same by key."""
        return {figure.key: figure for figure in self.show().values}

    def __getitem__(self, key: str) -> str:
        """A figure as text: `machine["clock"]`."""
        return self.figures[key].value

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), self.name, *self.changes))

    def __str__(self) -> str:
        return str(self.show())

    def __repr__(self) -> str:
        changes = f", {self.changes!r}" if self.changes else ""
        return f"dculab.{type(self).__name__}({self.name!r}{changes})"

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()


class Machine(Thing):
    """A machine: one under hwmodels by its name, or a YAML file."""

    _kind = "machine"

    def show(self) -> ShowAnswer:
        return _ask.ask("show", what=self.name, set=self._settings())


class Stack(Thing):
    """A serving program and its kernels: one under stacks by its name, a program such as "vllm", or a YAML file. Only
    stacks and files can be shown: which stack a program means depends on the machine."""

    _kind = "stack"


class Model(Thing):
    """A model: one under scenarios/models by its name, a folder with config.json, or the content of a config.json as a
    mapping. `name` names a mapping in answers."""

    _kind = "model"

    def __init__(
        self,
        model: PathLike | Mapping[str, Any],
        changes: Mapping[str, object] | None = None,
        *,
        name: str = "model",
    ):
        if isinstance(model, Mapping):
            # Read by the same reader as every other; the folder goes with the last object that needs it.
            self._folder = tempfile.TemporaryDirectory(prefix="dculab-")
            folder = pathlib.Path(self._folder.name, name)
            folder.mkdir(parents=True)
            (folder / "config.json").write_text(json.dumps(model), encoding="utf-8")
            model = folder
        super().__init__(model, changes)


MachineLike = Union[str, "os.PathLike[str]", Machine]
StackLike = Union[str, "os.PathLike[str]", Stack]
ModelLike = Union[str, "os.PathLike[str]", Mapping[str, Any], Model]


def machine_of(machine: MachineLike) -> Machine:
    return machine if isinstance(machine, Machine) else Machine(machine)


def stack_of(stack: StackLike) -> Stack:
    return stack if isinstance(stack, Stack) else Stack(stack)


def model_of(model: ModelLike) -> Model:
    return model if isinstance(model, Model) else Model(model)


def machines() -> list[Machine]:
    """The shipped machines, and those under hwmodels of the working folder."""
    return [Machine(name) for name in _dculab.machine_names()]


def models() -> list[Model]:
    """The shipped models, and those under scenarios/models of the working folder."""
    return [Model(name) for name in _dculab.model_names()]


def stacks() -> list[Stack]:
    """The shipped stacks, and those under stacks of the working folder."""
    return [Stack(name) for name in _dculab.stack_names()]


def scenarios() -> list[str]:
    """The names of the shipped scenarios, and of those under scenarios of the working folder."""
    return _dculab.scenario_names()
