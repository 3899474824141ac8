"""Entry points of a group, by which installed packages add to what is built in.

None is imported before it is used. One that cannot be used is a sentence of `problems`, and an
error for who names it. All others stay usable.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from typing import Any, Generic, TypeVar

from scaletest.model.checks import cut_text
from scaletest.model.errors import InvalidValue, suggestion

BUILT_IN = "scaletest"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Plugin:
    """An entry point of an installed package."""

    group: str
    name: str
    target: str  # MODULE:NAME
    package: str  # name and version of the package that brings it

    def load(self) -> Any:
        """Import the object that it names. InvalidValue, of one line, when that fails."""
        try:
            return metadata.EntryPoint(self.name, self.target, self.group).load()
        except Exception as error:
            raise self.unusable(f"{type(error).__name__}: {error}") from error

    def unusable(self, why: str) -> InvalidValue:
        """Return the error that says why it cannot be used."""
        text = cut_text(" ".join(why.split()), 300)
        return InvalidValue(
            f"{self.name} of the package {self.package} cannot be used: {text}",
            hint=f"correct or remove that package; its entry point is {cut_text(self.target, 200)}",
        )


class Plugins:
    """The entry points of a group, read when they are first asked for."""

    def __init__(self, group: str, built_in: Collection[str] = ()) -> None:
        """Take note of the group. built_in: names that no entry point may have, in any case."""
        self._group = group
        self._owners = {name.lower(): BUILT_IN for name in built_in}
        self._problems: list[str] = []

    @cached_property
    def by_name(self) -> dict[str, Plugin]:
        """All whose name is free; of two with one name the first by package."""
        candidates = []
        for entry_point in metadata.entry_points(group=self._group):
            package = entry_point.dist
            brought_by = f"{package.name} {package.version}" if package else "unknown"
            candidates.append(
                Plugin(
                    self._group,
                    name=cut_text(entry_point.name, 60),
                    target=entry_point.value,
                    package=cut_text(brought_by, 80),
                )
            )
        # by package, so that the order of installation decides nothing
        plugins = {}
        for plugin in sorted(candidates, key=lambda plugin: plugin.package):
            owner = self._owners.setdefault(plugin.name.lower(), plugin.package)
            if owner == plugin.package:
                plugins[plugin.name] = plugin
            else:
                self._problems.append(plugin.unusable(f"the name belongs to {owner}").message)
        return plugins

    @property
    def problems(self) -> list[str]:
        """Why entry points cannot be used, as far as their names tell; a sentence each."""
        assert self.by_name is not None  # reading them finds the problems
        return self._problems


class Registry(Mapping[str, T], Generic[T]):
    """Built-in objects of a type by name, and those of entry points, imported at the first use."""

    def __init__(
        self, group: str, type_: type[T], built_in: Mapping[str, T], taken: Collection[str] = ()
    ) -> None:
        """Take note of the built-in objects. taken: further names that no entry point may have."""
        self._type = type_
        self._built_in = built_in
        self._plugins = Plugins(group, [*built_in, *taken])
        self._errors: dict[str, InvalidValue] = {}

    def __getitem__(self, name: str) -> T:
        return self._built_in[name] if name in self._built_in else self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._built_in
        yield from self._loaded

    def __len__(self) -> int:
        return len(self._built_in) + len(self._loaded)

    @property
    def problems(self) -> list[str]:
        """Why entry points cannot be used, a sentence each."""
        assert self._loaded is not None  # loading them finds the errors
        return [*self._plugins.problems, *(error.message for error in self._errors.values())]

    def package(self, name: str) -> str:
        """Return the name and version of the package that brings an object."""
        return BUILT_IN if name in self._built_in else self._plugins.by_name[name].package

    def unknown(self, name: object, subject: str) -> InvalidValue:
        """Return the error for a name that is not here. subject: such as "kind".

        It says why the entry point of that name is unusable, else what there is.
        """
        error = self._errors.get(str(name).lower())
        return error or InvalidValue(
            f"there is no {subject} {cut_text(repr(name), 60)}", hint=suggestion(name, self)
        )

    @cached_property
    def _loaded(self) -> dict[str, T]:
        members = {}
        for name, plugin in self._plugins.by_name.items():
            try:
                member = plugin.load()
                if not isinstance(member, self._type):
                    raise plugin.unusable(
                        f"it is of type {type(member).__name__}, not {self._type.__name__}"
                    )
                # an object with another name than its entry point could not be found by it
                own_name = getattr(member, "name", plugin.name)
                if plugin.name != own_name:
                    raise plugin.unusable(f"it calls itself {own_name!r}")
                members[name] = member
            except InvalidValue as error:
                self._errors[name.lower()] = error
        return members
