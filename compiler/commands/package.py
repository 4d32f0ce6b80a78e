"""`opchain package`: opchain as one zip for `spark-submit --py-files`."""

from __future__ import annotations

from pathlib import Path

import click

from opchain.compiler.commands.failures import CommandError
from opchain.compiler.commands.output import note
from opchain.runtime.spark.source_archive import opchain_sources, zipped

DEFAULT_FOLDER = Path("dist")


@click.command(short_help="Writes the installed opchain as a zip for spark-submit.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=DEFAULT_FOLDER / "opchain.zip",
    show_default=True,
    help="The zip to write.",
)
def package(output: Path) -> None:
    """Writes the installed opchain as a zip: spark-submit --py-files dist/opchain.zip app.py.

    Executors need nothing else of it. The same version gives the same bytes, whether it was installed from a
    wheel or as a checkout.
    """
    write_archive(output, zipped(opchain_sources(with_page=True)))
    note(f"{output} written")


def write_archive(path: Path, data: bytes) -> None:
    """Writes a file that spark-submit will be given, and the folders above it.

    Raises:
        CommandError: It cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from None


COMMANDS = (package,)
