"""JSON that all parsers read in the same way, and nothing else."""

import json

import pytest
from trilift.lift.strict_json import parse_json

SOUND = {"a": [1, -2.5, 1e300, True, None], "b": {"c": "\u00e9\U0001f600", "d": 10**4000}}


def test_what_is_sound() -> None:
    text = json.dumps(SOUND)
    assert parse_json(text) == parse_json(text.encode()) == SOUND


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a": 1, "a": 1}',
        '{"a": {"b": 1, "b": 2}}',
        "NaN",
        "[Infinity]",
        "-Infinity",
        "1e999999999",
        "-1e400",
        "9" * 10**6,
        "[" * 10**5,
        '{"a":' * 10**5,
        '"\\ud800"',
        '{"\\udfff": 1}',
        '"\u00e9"'.encode(),
        b"\xef\xbb\xbf1",
        "1".encode("utf-16"),
        "01",
        "1 2",
        "1\0",
    ],
)
def test_what_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - what it says is the readers' business
        parse_json(text)
