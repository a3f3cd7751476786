"""Texts as people really have them: each is taken as it is meant, or refused by the number of its line.

A case says what is released: the sums of the lines before the refused one, or of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["CASES", "Outcome", "TextCase", "fault"]

Outcome = tuple[int, str, str]
"""Exit code, standard output and standard error of a command."""

_LONG = 1 << 20
_COUNT = ("count", "-", "--unbounded", "--epsilon", "1e40", "--quiet")
_NINE = ("count", "-", "--horizon", "9", "--epsilon", "1e40", "--quiet")
_COLUMN = (*_COUNT, "--column", "late")
_EDIT: tuple[str, ...] = ("count", "-", "--horizon", "9", "--epsilon", "1e6", "--quiet")
_EDIT += ("--neighbours", "edit", "--delta", "1e-3", "--mechanism", "gaussian")
_DECIMALS = (*_COUNT, "--resolution", "1/2")
_CHECK = ("distinct", "-", "--check")
_EVENTS = (*_CHECK, "--item-column", "item", "--sign-column", "sign")
_DISTINCT = ("distinct", "-", "--horizon", "4", "--epsilon", "1", "--quiet")


@dataclass(frozen=True)
class TextCase:
    """A text for a command.

    Attributes:
        name: what is odd about it.
        command: the arguments.
        data: the text.
        released: number of lines of values on standard output.
        line: number of the refused line; None if nothing is refused, 0 if it is refused as a whole.
        sums: the values themselves, where there is hardly any noise.
    """

    name: str
    command: tuple[str, ...]
    data: bytes
    released: int
    line: int | None
    sums: tuple[int, ...] | None = None


def fault(case: TextCase, outcome: Outcome) -> str | None:
    """Return what is wrong with what a command did; None if it did as it should."""
    code, out, err = outcome
    if case.line is None:
        if code != 0:
            return f"exit code {code}: {err[-200:]}"
    else:
        last = err.splitlines()[-1] if err else ""
        if code != 2 or not last.startswith("trilift: "):
            return f"exit code {code}, last line {last[:100]!r}"
        if case.line and f"line {case.line}: " not in last:
            return f"names another line: {last[:100]!r}"
        if "SECRET" in err:
            return "repeats the text"
    rows = out.splitlines()
    if "--check" in case.command:
        return None if bool(rows) == (case.line is None) else "says that it is fine"
    values = [row.rsplit(",", 1)[-1] for row in rows if "step" not in row]
    if len(values) != case.released:
        return f"released {len(values)} values instead of {case.released}"
    if case.sums is not None and tuple(float(value) for value in values) != case.sums:
        return f"released {values} instead of {case.sums}"
    return None


def _numbers() -> list[TextCase]:
    """A number a line."""
    fine: dict[str, bytes] = {
        "plain": b"1\n0\n1\n",
        "no final newline": b"1\n0\n1",
        "CRLF": b"1\r\n0\r\n1\r\n",
        "CRLF, no final newline": b"1\r\n0\r\n1",
        "some CRLF": b"1\r\n0\n1\r\n",
        "byte order mark": b"\xef\xbb\xbf1\n0\n1\n",
        "byte order mark and CRLF": b"\xef\xbb\xbf1\r\n0\r\n1\r\n",
        "spaces and tabs around": b" 1\t\n\t0\n1 \n",
        "a blank line at the end": b"1\n0\n1\n\n",
        "a line of spaces at the end": b"1\n0\n1\n  \r\n",
        "leading +": b"+1\n+0\n1\n",
        "leading zeros": b"01\n00\n0001\n",
        "negative zero": b"1\n-0\n1\n",
    }
    odd: dict[str, bytes] = {
        "underscore": b"1_0",
        "thousands comma": b"1,000",
        "thousands apostrophe": b"1'000",
        "thousands space": b"1 000",
        "narrow no-break space": "1\u202f0".encode(),
        "no-break space": "\u00a01".encode(),
        "full-width digit": "１".encode(),
        "Arabic-Indic digit": "١".encode(),
        "superscript": "1²".encode(),
        "fraction sign": "½".encode(),
        "minus sign U+2212": "−1".encode(),
        "line separator U+2028": "1\u20281".encode(),
        "byte order mark inside": "\ufeff1".encode(),
        "hexadecimal": b"0x1",
        "octal": b"0o1",
        "exponent": b"1e0",
        "decimal point": b"1.0",
        "decimal comma": b"1,0",
        "nan": b"nan",
        "NaN": b"NaN",
        "inf": b"inf",
        "-Infinity": b"-Infinity",
        "NA": b"NA",
        "null": b"null",
        "None": b"None",
        "true": b"true",
        "quoted": b'"1"',
        "semicolon": b"1;",
        "two numbers": b"1 1",
        "two signs": b"--1",
        "sign alone": b"+",
        "sign apart": b"- 1",
        "word": b"SECRET",
        "NUL after": b"1\0",
        "NUL before": b"\x001",
        "NUL alone": b"\0",
        "lone CR": b"1\r1",
        "control Z": b"\x1a",
        "escape sequence": b"\x1b[31m1",
        "Latin-1": b"1\xa0",
        "overlong UTF-8": b"\xc0\xb1",
        "UTF-8 surrogate": b"\xed\xa0\xb1",
        "above the bounds": b"2",
        "below the bounds": b"-1",
        "2^53 + 1": b"9007199254740993",
        "500 digits": b"1" * 500,
        "longer than 1 MiB": b"1" * (_LONG + 1),
        "spaces longer than 1 MiB": b" " * (_LONG + 1),
    }
    found = [TextCase(f"numbers: {name}", _COUNT, data, 3, None, (1, 1, 2)) for name, data in fine.items()]
    for name, text in odd.items():
        data = b"1\n0\n" + text + b"\n1\n"
        found.append(TextCase(f"numbers: {name}", _COUNT, data, 2, 3, (1, 1)))
    whole: dict[str, tuple[bytes, int]] = {
        "UTF-16 of either order": ("1\n0\n".encode("utf-16"), 1),
        "UTF-16, big end first, mark": (b"\xfe\xff" + "1\n0\n".encode("utf-16-be"), 1),
        "UTF-16 without mark": ("1\n0\n".encode("utf-16-le"), 1),
        "UTF-32": ("1\n0\n".encode("utf-32"), 1),
        "lone CR throughout": (b"1\r0\r1\r1", 1),
        "a header": (b"late\n1\n0\n", 1),
        "gzip": (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\n", 1),
        "empty": (b"", 0),
        "a byte order mark alone": (b"\xef\xbb\xbf", 0),
        "one newline": (b"\n", 0),
        "two newlines": (b"\n\n", 1),
    }
    found += [TextCase(f"numbers: {name}", _COUNT, *(data, 0, line)) for name, (data, line) in whole.items()]
    found += [
        TextCase("numbers: blank line inside", _COUNT, b"1\n\n1\n", 1, 2, (1,)),
        TextCase("numbers: two blank lines at the end", _COUNT, b"1\n1\n\n\n", 2, 3, (1, 2)),
        TextCase("numbers: longer than the horizon", _NINE, b"1\n" * 10, 9, 10, tuple(range(1, 10))),
        TextCase("numbers: checked, odd", (*_COUNT, "--check"), b"1\nSECRET\n", 0, 2),
        TextCase("numbers: checked, fine", (*_COUNT, "--check"), b"1\r\n0", 0, None),
        TextCase("decimals: as written", _DECIMALS, b"0.5\n1e0\n.5\n0.\n", 4, None),
        TextCase("decimals: nan", _DECIMALS, b"0.5\nnan\n", 1, 2),
        TextCase("decimals: comma", _DECIMALS, b"0.5\n0,5\n", 1, 2),
        TextCase("decimals: huge exponent", _DECIMALS, b"0.5\n1e99999999\n", 1, 2),
        TextCase("decimals: ratio", _DECIMALS, b"0.5\n1/2\n", 1, 2),
        TextCase("no events: null", _EDIT, b"1\nnull\n1\n", 3, None),
        TextCase("no events: blank", _EDIT, b"1\n\n1\n", 1, 2),
        TextCase("no events: nan", _EDIT, b"1\nnan\n1\n", 1, 2),
        TextCase("no events: NULL", _EDIT, b"1\nNULL\n1\n", 1, 2),
    ]
    return found


def _columns() -> list[TextCase]:
    """A column of a CSV."""
    fine: dict[str, bytes] = {
        "plain": b"day,late\n1,1\n2,0\n",
        "CRLF": b"day,late\r\n1,1\r\n2,0\r\n",
        "byte order mark": b"\xef\xbb\xbflate,day\n1,1\n0,2\n",
        "quotes": b'"day","late"\n"1","1"\n"2","0"\n',
        "spaces around": b"day, late \n1, 1 \n2,\t0\n",
        "newline in a quoted field": b'day,late\n"a\nb",1\n2,0\n',
        "comma in a quoted field": b'day,late\n"a,b",1\n2,0\n',
        "doubled quotes": b'day,late\n"a""b",1\n2,0\n',
        "other columns odd": "day,late\nnan,1\n１,0\n".encode(),
        "other column twice": b"day,day,late\n1,1,1\n2,2,0\n",
        "a blank line at the end": b"day,late\n1,1\n2,0\n\n",
    }
    odd: dict[str, bytes] = {
        "a field more": b"1,1,1",
        "a field less": b"1",
        "empty field": b"1,",
        "spaces for a field": b"1,  ",
        "thousands comma": b"1,1,000",
        "quoted thousands comma": b'1,"1,000"',
        "unclosed quote": b'1,"1',
        "text after a quote": b'1,"1"1',
        "semicolons": b"1;1",
        "blank row": b"",
        "exponent": b"1,1e0",
        "full-width digit": "1,１".encode(),
        "nan": b"1,nan",
        "word": b"1,SECRET",
        "the header again": b"day,late",
        "NUL": b"1,1\0",
        "lone CR": b"1,1\r1,1",
        "lone CR in quotes": b'"1\r",1',
        "not UTF-8": b"\xff,1",
        "above the bounds": b"1,2",
        "huge field": b"x" * 140_000 + b",1",
        "longer than 1 MiB": b"x" * (_LONG + 1) + b",1",
    }
    found = [TextCase(f"CSV: {name}", _COLUMN, data, 2, None, (1, 1)) for name, data in fine.items()]
    for name, text in odd.items():
        data = b"day,late\n1,1\n" + text + b"\n1,1\n"
        found.append(TextCase(f"CSV: {name}", _COLUMN, data, 1, 3, (1,)))
    heads: dict[str, tuple[bytes, int]] = {
        "column missing": (b"day,lateness\n1,1\n", 1),
        "column in capitals": (b"day,LATE\n1,1\n", 1),
        "column twice": (b"late,late\n1,1\n", 1),
        "no header": (b"1,1\n1,0\n", 1),
        "empty header": (b"\n1,1\n", 1),
        "unclosed quote in the header": (b'"day,late\n1,1\n', 1),
        "UTF-16": ("day,late\n1,1\n".encode("utf-16"), 1),
        "lone CR throughout": (b"day,late\r1,1\r", 1),
        "header alone": (b"day,late\n", 0),
        "empty": (b"", 0),
    }
    found += [TextCase(f"CSV: {name}", _COLUMN, *(data, 0, line)) for name, (data, line) in heads.items()]
    return found


def _events() -> list[TextCase]:
    """Items that come and go."""
    fine = {
        "plain": b"item,sign\na,1\na,-1\n",
        "CRLF and mark": b"\xef\xbb\xbfitem,sign\r\na,1\r\na,-1\r\n",
        "leading +": b"item,sign\na,+1\na,-1\n",
        "no event": b"item,sign\n,0\na,1\n",
        "items like numbers": "item,sign\nnan,1\n１,1\n1_000,1\n".encode(),
    }
    odd: dict[str, bytes] = {
        "sign 2": b"SECRET,2",
        "sign 1.0": b"SECRET,1.0",
        "sign true": b"SECRET,true",
        "sign empty": b"SECRET,",
        "sign full-width": "SECRET,１".encode(),
        "sign of 300 digits": b"SECRET," + b"1" * 300,
        "item empty": b",1",
        "item of spaces": b"  ,1",
        "a field more": b"SECRET,1,1",
        "a field less": b"SECRET",
        "unclosed quote": b'"SECRET,1',
        "NUL": b"SECRET\0,1",
        "lone CR": b"SECRET\r,1",
        "not UTF-8": b"SECRET\xff,1",
        "huge item": b"x" * 140_000 + b",1",
    }
    found = [TextCase(f"events: {name}", _EVENTS, data, 0, None) for name, data in fine.items()]
    for name, text in odd.items():
        found.append(TextCase(f"events: {name}", _EVENTS, b"item,sign\na,1\n" + text + b"\na,1\n", 0, 3))
    heads = {
        "column missing": b"SECRET,sign\na,1\n",
        "column twice": b"item,item,sign\na,a,1\n",
        "UTF-16": "item,sign\na,1\n".encode("utf-16"),
    }
    found += [TextCase(f"events: {name}", _EVENTS, data, 0, 1) for name, data in heads.items()]
    lines: dict[str, tuple[bytes, int | None]] = {
        "plain": (b"a\nb\n", None),
        "mark and CRLF": (b"\xef\xbb\xbfa\r\nb", None),
        "blank": (b"a\n\nb\n", 2),
        "lone CR throughout": (b"a\rb\rc\r", 1),
        "UTF-16": ("a\nb\n".encode("utf-16"), 1),
        "UTF-16 without mark": ("a\nb\n".encode("utf-16-le"), 1),
        "NUL": (b"a\nSECRET\0\n", 2),
        "longer than 1 MiB": (b"a\n" + b"x" * (_LONG + 1), 2),
        "empty": (b"", 0),
    }
    found += [TextCase(f"items: {name}", _CHECK, data, 0, line) for name, (data, line) in lines.items()]
    found += [
        TextCase("items released: lone CR", _DISTINCT, b"a\nb\na\rb\nc\n", 2, 3),
        TextCase("items released: too many", _DISTINCT, b"a\n" * 5, 4, 5),
        TextCase("items released: UTF-16", _DISTINCT, "a\nb\n".encode("utf-16"), 0, 1),
        TextCase("f2 released: blank", ("f2", *_DISTINCT[1:]), b"a\nb\n\nc\n", 2, 3),
    ]
    return found


def _rates() -> list[TextCase]:
    """Rates for an attack, which releases nothing before it has read them all."""
    command = ("attack", "-", "--mechanism", "BaseCC", "--epsilon", "1", "--delta", "1e-5", "--runs", "2")
    texts = {
        "nan": (b"0.5\nnan\n", 2),
        "above 1": (b"0.5\n1.5\n", 2),
        "negative": (b"0.5\n-0.5\n", 2),
        "comma": (b"0.5\n0,5\n", 2),
        "NUL": (b"0.5\n0.5\0\n", 2),
        "lone CR": (b"0.5\n0.5\r0.5\n", 2),
        "blank": (b"0.5\n\n0.5\n", 2),
        "UTF-16": ("0.5\n0.5\n".encode("utf-16"), 1),
        "empty": (b"", 0),
        "one step": (b"0.5\n", 0),
        "column missing": (b"a,b\n0.5,0.5\n", 1),
    }
    return [TextCase(f"rates: {name}", command, data, 0, line) for name, (data, line) in texts.items()]


CASES: Sequence[TextCase] = (*_numbers(), *_columns(), *_events(), *_rates())


def faults(run: Callable[[TextCase], Outcome]) -> list[str]:
    """Run all cases and return what went wrong."""
    found = ((case, fault(case, run(case))) for case in CASES)
    return [f"{case.name}: {what}" for case, what in found if what is not None]
