"""Reading numbers from text: what is refused, and by which line."""

import io
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trilift.arguments import number, parse_number
from trilift.lift.errors import ParameterError
from trilift.reading import MAX_LINE, Lines, reader

EMPTY = ' (an empty cell is "no event" with --neighbours edit alone)'

EMPTY_ROW = 'line 3: blank (in a CSV of one column, write "no event" as two double quotes)'


class Pieces(io.BytesIO):
    """A stream that hands over pieces of given sizes."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        super().__init__(data)
        self._sizes = sizes

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(self._sizes.pop() if self._sizes else size)


def plain(data: bytes, *, integers: bool = True) -> list[tuple[int, object]]:
    return list(reader(io.BytesIO(data), column=None, integers=integers, delimiter=",")[1])


def column(data: bytes, name: str, *, delimiter: str = ",") -> list[tuple[int, object]]:
    return list(reader(io.BytesIO(data), column=name, integers=True, delimiter=delimiter)[1])


@pytest.mark.parametrize(
    "data",
    [
        b"1\n-2\n+3\n",
        b"1\n-2\n+3",
        b"1\r\n-2\r\n+3\r\n",
        b"\xef\xbb\xbf1\n-2\n3\n",
        b" 1\t\n-2 \n3\n",
        b"1\n-2\n3\n\n",
        b"1\n-2\n3\n \t\r\n",
    ],
)
def test_accepted_forms_of_plain_lines(data: bytes) -> None:
    assert plain(data) == [(1, 1), (2, -2), (3, 3)]


@pytest.mark.parametrize(
    "line",
    [
        "1_000",
        "1,000",
        "１",
        "٣",
        "nan",
        "inf",
        "0x1",
        "1 2",
        "--1",
        "+",
        "one",
        "\u00a01",
        "NA",
        "yes",
        "1" * 500,
    ],
)
def test_lines_that_are_no_integers_are_named_by_number_alone(line: str) -> None:
    with pytest.raises(ParameterError) as caught:
        plain(f"5\n7\n{line}\n1\n".encode())
    assert str(caught.value) == "line 3: not an integer"


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("0.25", " (for decimals: --resolution 1/128)"),
        ("1e-3", " (for decimals: --resolution 1/128)"),
        ("1.0", " (write whole numbers without point and exponent, or take decimals: --resolution 1/2)"),
        ("1e3", " (write whole numbers without point and exponent, or take decimals: --resolution 1/2)"),
        ("True", " (for truth values, write 1 and 0)"),
        (" FALSE", " (for truth values, write 1 and 0)"),
    ],
)
def test_what_is_nearly_an_integer_is_told_what_to_do(line: str, remedy: str) -> None:
    with pytest.raises(ParameterError) as caught:
        plain(f"5\n{line}\n1\n".encode())
    assert str(caught.value) == f"line 2: not an integer{remedy}"


@pytest.mark.parametrize(
    ("data", "line"), [(b"1\n\n2\n", 2), (b"\n1\n", 1), (b"1\n\n\n", 2), (b"1\n \n2", 2)]
)
def test_blank_lines_are_refused_but_at_the_very_end(data: bytes, line: int) -> None:
    with pytest.raises(ParameterError, match=f"^line {line}: blank$"):
        plain(data)


def test_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"^line 2: not UTF-8 text$"):
        plain(b"1\n\xff\xfe\n")
    with pytest.raises(ParameterError, match=r"^line 1: not UTF-8 text \(it begins as UTF-16 does: save it"):
        plain("1\n".encode("utf-16"))
    with pytest.raises(ParameterError, match=r"^line 1: not UTF-8 text \(it begins as UTF-16 does"):
        plain(b"\xff\xfe1\0")
    with pytest.raises(ParameterError, match=r"^line 2: a NUL byte, which no UTF-8 text has"):
        plain(b"1\n1\0\n")


@pytest.mark.parametrize("text", [b"1\r0\r1\r", b"1\r0", b"\r1\n", b"1\r\r\n"])
def test_a_carriage_return_elsewhere_is_not_taken_for_an_end_nor_for_a_space(text: bytes) -> None:
    with pytest.raises(ParameterError, match=r"^line 1: a carriage return within the line \(lines must end"):
        plain(text)


def test_a_byte_order_mark_counts_only_at_the_start() -> None:
    with pytest.raises(ParameterError, match=r"^line 2: not an integer$"):
        plain(b"1\n\xef\xbb\xbf1\n")


def test_endless_lines_are_not_held_in_memory() -> None:
    with pytest.raises(ParameterError, match=f"^line 2: longer than {MAX_LINE} bytes$"):
        plain(b"1\n" + b"1" * (2 * MAX_LINE))


def test_a_header_without_a_column_gets_a_hint() -> None:
    with pytest.raises(
        ParameterError, match=r"^line 1: not an integer \(for a table with a header, name the --column\)$"
    ):
        plain(b"late\n1\n")


@given(st.lists(st.integers(-99, 99), max_size=30), st.lists(st.integers(1, 9), max_size=40), st.booleans())
def test_pieces_do_not_matter(numbers: list[int], sizes: list[int], crlf: bool) -> None:
    """However the bytes arrive, the lines are the same."""
    end = "\r\n" if crlf else "\n"
    data = "".join(f"{x}{end}" for x in numbers).encode()
    found = reader(Pieces(data, sizes), column=None, integers=True, delimiter=",")[1]
    assert [value for _, value in found] == numbers


def test_lines_are_ready_only_when_whole() -> None:
    lines = Lines(Pieces(b"1\n2\n3", [1, 4]))  # first 4 bytes, then 1
    assert not lines.ready
    assert next(lines) == "1\n"
    assert lines.ready
    assert next(lines) == "2\n"
    assert not lines.ready
    assert next(lines) == "3\n"


def test_decimals_are_exact() -> None:
    data = b"0.1\n-.5\n2.\n1e-2\n3\n"
    expected = [Fraction(1, 10), Fraction(-1, 2), Fraction(2), Fraction(1, 100), Fraction(3)]
    assert [value for _, value in plain(data, integers=False)] == expected
    for bad in ("nan", "inf", "1_0", ".", "e3", "1e9999", "1/2", "１.5", "", "0x1p3"):
        assert parse_number(bad) is None


@given(st.fractions(max_denominator=10**6))
def test_options_take_ratios(value: Fraction) -> None:
    assert number("epsilon", f"{value.numerator}/{value.denominator}") == value


@pytest.mark.parametrize("text", ["1/0", "", "1/", "a", "nan", "-1", "0", "1_0"])
def test_numbers_of_options_are_checked(text: str) -> None:
    with pytest.raises(ParameterError, match="epsilon must be a finite number > 0"):
        number("epsilon", text, above=0)


@pytest.mark.parametrize(
    "data",
    [
        b"day,late\n1,0\n2,1\n",
        b"day,late\r\n1,0\r\n2,1\r\n\r\n",
        b'\xef\xbb\xbf"day", late\n1,"0"\n2, 1',
        b'"late",note\n0,"a\nb"\n1,""\n',
    ],
)
def test_accepted_forms_of_csv(data: bytes) -> None:
    assert [value for _, value in column(data, "late")] == [0, 1]


def test_csv_lines_are_counted_through_quoted_line_ends() -> None:
    with pytest.raises(ParameterError, match=r"^line 4: not an integer$"):
        column(b'late,note\n1,"a\nb"\nx,c\n', "late")


def test_another_delimiter() -> None:
    assert column(b"day;late\n1,5;1\n", "late", delimiter=";") == [(2, 1)]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"day,late\n1\n", "line 2: 1 field, but the header has 2"),
        (b"day,late\n1,0\n1,0,0\n", "line 3: 3 fields, but the header has 2"),
        (b"day,late\n1,\n", f"line 2: not an integer{EMPTY}"),
        (b"day,late\n1, \n", f"line 2: not an integer{EMPTY}"),
        (b"day,late\n1,NA\n", "line 2: not an integer"),
        (b"day,late\n\n1,0\n", "line 2: blank"),
        (b"day\n1\n", "line 1: no column is named 'late'; there are 'day'"),
        (b'"late" ,day\n1,1\n', "line 1: not CSV (',' expected after '\"')"),
        (b"late,late\n1,1\n", "line 1: the header names the column 'late' 2 times"),
    ],
)
def test_refused_csv(data: bytes, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        column(data, "late")
    assert str(caught.value) == message


def events(data: bytes, name: str | None = None) -> list[tuple[int, object]]:
    found = reader(io.BytesIO(data), column=name, integers=True, delimiter=",", no_event=True)
    return list(found[1])


def test_no_event_is_an_empty_cell_of_a_csv() -> None:
    rows = b'day,late\n1,\n2,0\n3,""\n4,1\n5, \n'
    assert events(rows, "late") == [(2, None), (3, 0), (4, None), (5, 1), (6, None)]
    assert events(b'late\n1\n""\n0\n', "late") == [(2, 1), (3, None), (4, 0)]


def test_no_event_is_null_on_a_line_of_its_own() -> None:
    assert events(b"1\nnull\n0\n null\r\n\n") == [(1, 1), (2, None), (3, 0), (4, None)]


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (b"1\n\n0\n", None, 'line 2: blank ("no event" is written null)'),
        (b"1\nNull\n", None, "line 2: not an integer"),
        (b'1\n""\n', None, "line 2: not an integer"),
        (b"late\n1\n\n0\n", "late", EMPTY_ROW),
        (b"day,late\n1,0\n\n2,1\n", "late", "line 3: blank"),
        (b"day,late\n1,null\n", "late", "line 2: not an integer"),
        (b"day,late\n1,NA\n", "late", "line 2: not an integer"),
    ],
)
def test_nothing_else_is_no_event(data: bytes, name: str | None, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        events(data, name)
    assert str(caught.value) == message


def test_null_is_a_number_to_nobody_else() -> None:
    with pytest.raises(ParameterError, match=r"^line 2: not an integer$"):
        plain(b"1\nnull\n")


def test_a_quote_that_never_ends_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"^line 3: not CSV"):
        column(b'late\n1\n"1\n0\n0\n', "late")


def test_long_headers_are_cut() -> None:
    header = ",".join(f"c{i}" for i in range(30)).encode()
    with pytest.raises(ParameterError, match=r"'c19' and 10 more$"):
        column(header + b"\n", "late")
