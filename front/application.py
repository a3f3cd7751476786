"""The commands, and the boundary where every error becomes one line and an exit code.

Exit codes: 0 done; 1 checked, and it is false; 2 bad input or usage; 130 and 143 stopped by SIGINT and
SIGTERM; 141 the reader of standard output has gone away.
"""

from __future__ import annotations

import functools
from typing import Annotated, Any

import typer
from trilift import __version__
from trilift.commands import (
    artifacts,
    attack,
    audit,
    bench,
    certify,
    count,
    demo,
    distinct,
    exporting,
    f2,
    importing,
    inspect,
    optimize,
    plan,
    plot,
    reproduce,
    runs,
)
from trilift.lift.errors import CertificateError, TriliftError
from trilift.output import CLOSED_PIPE, ClosedPipeError, note, one_line, warnings_as_notes, write
from trilift.stopping import exit_code, interrupted, say_stopped

__all__ = ["app", "run"]

BAD_INPUT = 2

app = typer.Typer(
    name="trilift",
    help="Private running counts: search a factorisation, prove it, plan with it, count with it.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        write(f"trilift {__version__}\n")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


for _module in (count, distinct, f2, plan, artifacts, inspect, certify, importing, exporting):
    app.command(_module.NAME)(_module.command)
app.add_typer(plot.app, name=plot.NAME)
app.add_typer(optimize.app, name="optimize")
app.command(runs.NAME)(runs.command)
app.add_typer(reproduce.app, name=reproduce.NAME)
app.command(attack.NAME)(attack.command)
app.command(audit.NAME)(audit.command)
app.command(bench.NAME)(bench.command)
app.command(demo.NAME)(demo.command)


@functools.cache
def _command() -> Any:
    """Return all commands, which typer builds in some 40 ms: once."""
    return typer.main.get_command(app)


def run(arguments: list[str]) -> int:
    """Run a command and return the exit code; errors become one line on standard error."""
    try:
        with warnings_as_notes():
            result = _command().main(args=arguments, prog_name="trilift", standalone_mode=False)
    except BaseException as error:
        return _exit_code(error)
    if interrupted():  # typer may make a plain exit of it, always of 130
        say_stopped()
        return exit_code()
    return result if isinstance(result, int) else 0


def _exit_code(error: BaseException) -> int:
    """Say what went wrong and return the exit code; what is nobody's mistake but ours goes on as it is."""
    if isinstance(error, ClosedPipeError):
        return CLOSED_PIPE
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        say_stopped()
        return exit_code()
    if isinstance(error, SystemExit):  # typer's own way out when a pipe breaks
        return CLOSED_PIPE
    if isinstance(error, TriliftError):
        note(f"trilift: {one_line(str(error))}")
        return 1 if isinstance(error, CertificateError) else BAD_INPUT
    if isinstance(error, OSError):
        where = "" if error.filename is None else f"{error.filename}: "
        note(f"trilift: {one_line(where + (error.strerror or str(error)))}")
        return BAD_INPUT
    if isinstance(error, MemoryError):
        note("trilift: not enough memory for this")
        return BAD_INPUT
    message = _usage_message(error)
    if message is None:
        raise error
    note(f"trilift: {one_line(message)}")
    return BAD_INPUT


def _usage_message(error: BaseException) -> str | None:
    """Return what typer has to say about bad arguments (its exceptions moved between its versions)."""
    form: Any = getattr(error, "format_message", None)
    if not callable(form):
        return None
    context: Any = getattr(error, "ctx", None)
    command = "trilift" if context is None else context.command_path
    text = str(form()).strip()
    if "unexpected extra argument" in text:
        text += _pairs(context)
    return f"{text or 'a command is needed'} (see {command} --help)"


def _pairs(context: Any) -> str:
    """Remind of the options of two values, which take the next word when they are given only one."""
    options = [] if context is None else context.command.params
    pairs = [f"{p.opts[0]} {p.metavar}" for p in options if p.nargs == 2 and p.opts[0].startswith("--")]
    return f"; with a space between its two values: {', '.join(pairs)}" if pairs else ""
