"""Parts of answers: objects of their JSON as frozen dataclasses, and lists of these as rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

from dculab import _html

if TYPE_CHECKING:
    import pandas

Row = TypeVar("Row")
Reader = Callable[[Any], Any]


class Mismatch(Exception):
    """The JSON is of another class."""


class Interval(NamedTuple):
    """The lower and the upper end, of which a value lies in between."""

    low: float
    high: float


class Part:
    """An object of an answer: its keys are fields. `dataclasses.fields` has their units and what they mean."""

    _readers: ClassVar[Mapping[str, tuple[str, Reader]]] = {}
    _required: ClassVar[frozenset[str]] = frozenset()
    _others: ClassVar[Reader | None] = None

    @classmethod
    def _of(cls, json: Any) -> Any:
        if not isinstance(json, dict) or not cls._required <= json.keys():
            raise Mismatch(cls.__name__)
        arguments, others = {}, {}
        for key, value in json.items():
            known = cls._readers.get(key)
            if known is not None:
                arguments[known[0]] = known[1](value)
            elif cls._others is not None:
                others[key] = cls._others(value)
            else:
                raise Mismatch(f"{cls.__name__}: {key}")
        if cls._others is not None:
            arguments["others"] = MappingProxyType(others)
        return cls(**arguments)

    def _shown(self) -> Iterable[tuple[str, Any]]:
        for each in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if value is not None:
                yield each.name, value

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={_short(value)}" for name, value in self._shown())
        return f"{type(self).__name__}({shown})"

    def _repr_html_(self) -> str:
        cells = [[name, _short(value)] for name, value in self._shown()]
        return _html.table(type(self).__name__, ["", ""], cells)


def _short(value: Any) -> str:
    if isinstance(value, Rows) and len(value) > 3:
        return f"<{len(value)} rows>"
    return repr(dict(value)) if isinstance(value, MappingProxyType) else repr(value)


class Rows(tuple[Row, ...], Generic[Row]):
    """A list of an answer's objects, as a tuple that pandas takes."""

    __slots__ = ()

    def to_pandas(self) -> pandas.DataFrame:
        """A row of each, a column of each key: those of objects within are named `key.within`, the ends of an interval
        `key.low` and `key.high`."""
        import pandas

        return pandas.DataFrame([flat(row) for row in self])

    def _repr_html_(self) -> str:
        flats = [flat(row) for row in self]
        columns = list(dict.fromkeys(key for row in flats for key in row))
        return _html.table("", columns, [[_html.value(row.get(column)) for column in columns] for row in flats])


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """An object's values by their paths: those of objects and intervals within it stand beside its own."""
    if isinstance(value, Part):
        items: Iterable[tuple[str, Any]] = (
            (each.name, getattr(value, each.name)) for each in dataclasses.fields(value)  # type: ignore[arg-type]
        )
    elif isinstance(value, Interval):
        items = (("low", value.low), ("high", value.high))
    elif isinstance(value, Mapping):
        items = value.items()
    else:
        return {prefix: value}
    found: dict[str, Any] = {}
    for key, each in items:
        found.update(flat(each, f"{prefix}.{key}" if prefix else key))
    return found


# What makes a value of an answer of the JSON's.


def as_is(json: Any) -> Any:
    return json


def interval(json: Any) -> Interval:
    return Interval(*json)


def part(find: Callable[[], type[Part]]) -> Reader:
    return lambda json: find()._of(json)


def optional(read: Reader) -> Reader:
    return lambda json: None if json is None else read(json)


def rows(read: Reader) -> Reader:
    return lambda json: Rows(read(each) for each in _items(json, list))


def values(read: Reader) -> Reader:
    return lambda json: tuple(read(each) for each in _items(json, list))


def mapping(read: Reader) -> Reader:
    return lambda json: MappingProxyType({key: read(each) for key, each in _items(json, dict).items()})


def one_of(*readers: Reader) -> Reader:
    def read(json: Any) -> Any:
        for each in readers:
            try:
                return each(json)
            except Mismatch:
                continue
        raise Mismatch("none of several")

    return read


def _items(json: Any, wanted: type) -> Any:
    if not isinstance(json, wanted):
        raise Mismatch(wanted.__name__)
    return json
