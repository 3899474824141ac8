"""environment.json of a run: its machine and the versions of its software."""

from __future__ import annotations

from scaletest.model.schema.parts import Schema, count, document, maybe, rows, table, text


def environment() -> Schema:
    """Everything that a reader needs to repeat the run."""
    return document(
        "environment",
        "Machine and versions of a run. What cannot be read is empty.",
        {
            "schema_version": count("version of the format", 1),
            "scaletest": text("version"),
            "began": text("when the run began, ISO 8601 in UTC"),
            "command_line": rows(text(), "passwords in URLs are masked"),
            "host": text(),
            "python": text("version"),
            "system": text("operating system and its version"),
            "kernel": text("release"),
            "machine": text("architecture"),
            "processor": text(),
            "memory": text(),
            "clock_source": text("of the kernel"),
            "cores": maybe(count("that the run might use")),
            "packages": table(text(), "versions by name"),
            "devices": rows(text(), "files that --device-glob matched"),
        },
    )
