"""Names of benchmark kinds and of what they measure, for a shell that completes a line."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from scaletest.kinds.registry import KINDS


def kinds(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Kinds, whatever the case of the beginning, each with its line of help."""
    matching = [kind for kind in KINDS.values() if kind.name.lower().startswith(incomplete.lower())]
    return [CompletionItem(kind.name, help=kind.help) for kind in matching]


def kinds_and_files(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Kinds, else files."""
    items = kinds(context, parameter, incomplete)
    if not (items and incomplete):
        items.append(CompletionItem(incomplete, type="file"))
    return items


def measures(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """What the kind on the line measures; without one, what any kind does."""
    chosen = str(context.params.get("subject"))
    names: dict[str, str] = {}
    for name, kind in KINDS.items():
        if chosen == name or chosen not in KINDS:
            names |= {headline.name: headline.help for headline in kind.headlines}
    return [
        CompletionItem(name, help=text)
        for name, text in names.items()
        if name.startswith(incomplete)
    ]
