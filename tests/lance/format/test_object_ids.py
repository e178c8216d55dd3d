from hashlib import blake2b

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.lance.format.object_ids import (
    decode_value,
    encode_value,
    join_object_id,
    leaf_directory,
    object_id_parts,
    split_level,
)

_NULL = "__HIVE_DEFAULT_PARTITION__"
_texts = st.one_of(
    st.text(),
    st.text("=$/%.\\ \t\n\x7f%2Fa'\"🚰é_"),
    st.sampled_from(["", ".", "..", " ", "  ", _NULL, "%5F" + _NULL[1:]]),
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (None, _NULL),
        (_NULL, "%5F" + _NULL[1:]),
        ("", ""),
        ("US", "US"),
        ("a=b$c/d%e.f\\g", "a%3Db%24c%2Fd%25e%2Ef%5Cg"),
        (" New York ", "%20New York%20"),
        ("\x00\t\n\x7f", "%00%09%0A%7F"),
        ("Zürich 'Ω' 🚰", "Zürich %27Ω%27 🚰"),
        ("..", "%2E%2E"),
    ],
)
def test_names(text: str | None, name: str) -> None:
    assert encode_value(text) == name
    assert decode_value(name) == text


@given(_texts, _texts)
@example(_NULL, "%5F" + _NULL[1:])
def test_names_are_reversible_distinct_and_harmless(text: str, other: str) -> None:
    name = encode_value(text)
    assert decode_value(name) == text
    assert (encode_value(other) == name) == (other == text)
    assert name not in (".", "..", _NULL)
    assert not set(name) & set("/$=\\\n")
    assert split_level(f"{encode_value(other)}={name}") == (other, text)
    assert object_id_parts(join_object_id(["root", f"{encode_value(other)}={name}"])) == [
        "root",
        f"{encode_value(other)}={name}",
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [("%C3%BC%f0%9f%9A%B0", "ü🚰"), ("100%", "100%"), ("%zz%4", "%zz%4"), ("%61b", "ab"), ("ü%20", "ü ")],
)
def test_foreign_escapes(name: str, text: str) -> None:
    assert decode_value(name) == text


def test_names_that_are_none() -> None:
    with pytest.raises(ValueError, match="UTF-8"):
        decode_value("%FF")
    with pytest.raises(ValueError, match="country"):
        split_level("country")
    assert split_level("a=b=c") == ("a", "b=c")
    assert split_level(f"country={_NULL}") == ("country", None)


@given(st.lists(st.text(), max_size=3), st.integers(0, 300))
def test_directories_are_short_and_tell_leaves_apart(values: list[str], filler: int) -> None:
    leaf = join_object_id(["root", *(f"c={encode_value(value)}" for value in values), f"f={'🚰' * filler}"])
    place = leaf_directory(leaf)
    assert len(place.encode()) <= 200
    assert place == leaf_directory(leaf)
    assert place != leaf_directory(leaf + "x")
    assert "/" not in place
    digest, _, name = place.partition("_")
    assert leaf.startswith(name)
    assert (len(digest), name) == (8, leaf) or (len(digest) == 32 and len(place.encode()) > 196)


def test_long_names_with_the_same_short_hash_have_directories_of_their_own() -> None:
    """Two of so many share 32 bits of their hashes."""
    seen: dict[str, str] = {}
    for number in range(1_000_000):
        leaf = f"n$c={'x' * 200}{number}"
        other = seen.setdefault(blake2b(leaf.encode(), digest_size=4).hexdigest(), leaf)
        if other != leaf:
            break
    assert other != leaf
    assert leaf_directory(other) != leaf_directory(leaf)
