"""Words: the units at which mentions start and end, with exact character offsets.

Text in spaced scripts is cut into Unicode words; text in Chinese, Japanese, Thai and other scripts without spaces
into single characters. Words are short, because a mention can only start and end at a word boundary: "Paris-based"
is three words, so that "Paris" can be found in it, and "John's" is "John" and "'s". URLs, e-mail addresses, "3.5",
"1,000", "10:30", "U.S.", "O'Brien" and emoji stay whole. Full-width letters and digits are cut like half-width ones.

The words cover exactly the characters that are not white space.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from onoma.text.width import fold_width

Spans = NDArray[np.int32]  # (n, 2): first character, character after the last

MAX_WORD_LENGTH = 128
"""Longer runs (base64, DNA, "aaaa…") are split, so that every word fits into an encoder's window."""

# Scripts without spaces between words, as ranges of code points. Korean uses spaces, so it is not among them.
_UNSPACED_RANGES = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c"  # radicals, iteration marks, Suzhou numerals
    "\u3041-\u3096\u309b-\u309f\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # hiragana, katakana
    "\u3100-\u312f\u31a0-\u31bf"  # bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00016fe0-\U00018d8f\U0001aff0-\U0001b2ff"  # ideographs, Tangut, Nüshu
    "\U00020000-\U0003ffff"
    "\u0e01-\u0e30\u0e32-\u0e33\u0e40-\u0e46\u0e80-\u0eb0\u0eb2-\u0eb3\u0ebd-\u0ec6\u0edc-\u0edf"  # Thai, Lao
    "\u1000-\u102a\u103f\u1050-\u1055\u1780-\u17b3\u17d7\u17dc"  # Burmese, Khmer
    "\u1950-\u19ab\u1a20-\u1a54\uaa60-\uaa76\uaa80-\uaaaf"  # Tai Le, New Tai Lue, Tai Tham, Tai Viet
)
_PICTURE = (
    "[\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff]"
)
_PICTURE_CHANGE = "[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
_UNITS = (  # a number before one of these is a word of its own: "5mg" is "5" and "mg"
    "[kcmµμn]?m[²³]?|[kmµμn]?g|[mµμcd]?l|[mµμn]s|min|hrs?|h|lbs?|oz|ft|in|mi|yd|mph|rpm|ppm|dpi|px|"
    "[kmgt]i?b|[kmgt]bps|[kmg]?hz|[kmg]?w|[kmg]wh|[kmµμ]?v|[mµμ]a|mah|k?cal|kj|[kmgh]pa|bar|psi|db|"
    "[mµμn]?mol|[mk]bp|kda|bn|mn|usd|eur|gbp|rmb|am|pm"
)


def _character_class(pattern: str, characters: str) -> str:
    """The characters that match a pattern, as ranges for a character class."""
    runs = (match.group() for match in re.finditer(f"(?:{pattern})+", characters))
    return "".join(f"\\U{ord(run[0]):08x}-\\U{ord(run[-1]):08x}" for run in runs)


@lru_cache(maxsize=1)
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED_RANGES}]")


@lru_cache(maxsize=1)
def _mark_class() -> str:
    """Combining marks, joiners and the soft hyphen, which belong to the preceding character."""
    marks = (chr(c) for c in range(0x10000) if unicodedata.category(chr(c))[0] == "M")
    return "".join(marks) + "\u200c\u200d\u00ad\u2060\U000e0100-\U000e01ef"


@lru_cache(maxsize=1)
def _word() -> re.Pattern[str]:
    """Matches one word or one run of white space; its matches cover the whole text."""
    mark = f"[{_mark_class()}]"
    # Beyond the basic plane whole blocks are named, because `re` searches such ranges linearly.
    spaced = _character_class(f"(?![{_UNSPACED_RANGES}])[^\\W_]", "".join(map(chr, range(0x10000)))) + (
        "\U00010000-\U00016fdf\U0001d400-\U0001d7ff\U0001e000-\U0001efff"  # old scripts, mathematical letters, Adlam
    )
    inside = f"[_{spaced}{_mark_class()}]"
    letter = f"(?!\\d)[{spaced}]"
    picture = f"{_PICTURE}(?:{_PICTURE_CHANGE}|{mark})*+"
    clitic = f"(?i:s|d|m|ll|re|ve)(?!{inside})"
    return re.compile(
        rf"""
        \s++
      | [A-Za-z]{{2,{MAX_WORD_LENGTH}}}+ (?!{inside}|['’ʼ])            # most words, tried first
      | [{_UNSPACED_RANGES}] (?!{mark})                           # and most Chinese characters
      | [0-9\#*]\ufe0f?\u20e3                                     # keycap
      | [\U0001f1e6-\U0001f1ff]{{2}}                              # flag
      | {picture} (?:(?<=\u200d){picture}){{0,15}}+                # emoji, joined ones too
      | \d{{1,30}}+ (?:[.,:]\d{{1,30}}+){{0,5}}+ (?=(?i:{_UNITS})(?!{inside}))  # a number before its unit
      | (?:{letter}\.){{2,8}}+ (?!{letter}\B)                      # U.S.
      | (?:
            {inside}
          | (?<=\d) (?: \.(?=\d) | ,(?=\d{{3}}(?!\d)) | :(?=\d\d(?!\d)) )  # 3.5, 1,000, 10:30
          | (?<={inside})['’ʼ](?={letter})(?!{clitic})               # O'Brien
        ){{1,{MAX_WORD_LENGTH}}}+
      | ['’ʼ]{clitic}                                             # John 's
      | \S{mark}{{0,15}}+                                         # punctuation, Chinese with marks
        """,
        re.VERBOSE,
    )


_MAYBE_SPECIAL = re.compile(r"@|://|www\.", re.IGNORECASE)
_URL_CHARACTER = r"""[^\s<>"'`{}|\\^\u2000-\u206f\u3000-\uffff]"""
_URL_START = re.compile(rf"(?:(?:https?|ftps?|file|s3|git|ssh)://|\bwww\.){_URL_CHARACTER}", re.IGNORECASE)
_URL_REST = re.compile(rf"{_URL_CHARACTER}{{0,2047}}+")
_BEFORE_AT = string.ascii_letters + string.digits + "_.+-"
_AFTER_AT = re.compile(r"[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}", re.ASCII)


@lru_cache(maxsize=1)
def _word_start() -> re.Pattern[str]:
    return re.compile(rf"(?<=\s)\S|[{_UNSPACED_RANGES}]")


_SECTION = 1 << 18  # characters
_TRAILING = ".,;:!?…'\"’”»"  # of a URL, where they belong to the sentence


def _specials(text: str) -> Iterator[tuple[int, int]]:
    """URLs and e-mail addresses, without surrounding punctuation."""
    done = 0
    for clue in _MAYBE_SPECIAL.finditer(text):
        if clue.start() < done:
            continue
        found = _email(text, clue.start(), done) if clue.group() == "@" else _url(text, clue.start(), done)
        if found is not None:
            start, done = found
            yield from ((cut, min(cut + MAX_WORD_LENGTH, done)) for cut in range(start, done, MAX_WORD_LENGTH))


def _email(text: str, at: int, low: int) -> tuple[int, int] | None:
    low = max(low, at - 64)
    start, after = low + len(text[low:at].rstrip(_BEFORE_AT)), _AFTER_AT.match(text, at + 1)
    return (start, after.end()) if start < at and after else None


def _url(text: str, clue: int, low: int) -> tuple[int, int] | None:
    start = _URL_START.search(text, max(low, clue - 5), clue + 5)  # the scheme stands before "://"
    rest = start and start.start() <= clue and _URL_REST.match(text, start.end())
    return (start.start(), _trimmed_end(text, start.start(), rest.end())) if start and rest else None


def _trimmed_end(text: str, start: int, end: int) -> int:
    """Where a URL ends without trailing punctuation and closing brackets that are not opened in it."""
    url = text[start:end].rstrip(_TRAILING)
    for opening, closing in ("()", "[]"):
        surplus = url.count(closing) - url.count(opening)
        while surplus > 0 and url.endswith(closing):
            url, surplus = url[:-1].rstrip(_TRAILING), surplus - 1
    return start + len(url)


def _sections(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut a long text at safe word starts, so that only one section at a time is held as strings."""
    while end - start > _SECTION:
        cut = _word_start().search(text, start + _SECTION, end)
        if cut is None:
            break
        yield start, cut.start()
        start = cut.start()
    yield start, end


def _tiles(text: str, start: int, end: int) -> Spans:
    """The words between two offsets."""
    tiles = _word().findall(text, start, end)  # much faster than one match object per word
    lengths = np.fromiter(map(len, tiles), np.int32, len(tiles))
    space = np.fromiter(map(str.isspace, tiles), np.bool_, len(tiles))
    ends = start + np.cumsum(lengths, dtype=np.int32)
    return np.stack([ends - lengths, ends], axis=1)[~space]


def segment(text: str) -> Spans:
    """The words of a text, as character offsets of shape (n, 2).

    >>> [ "Ann's dog, 5mg in 北京".__getitem__(slice(*w)) for w in segment("Ann's dog, 5mg in 北京") ]
    ['Ann', "'s", 'dog', ',', '5', 'mg', 'in', '北', '京']
    """
    text = fold_width(text)
    words = np.concatenate([_tiles(text, *section) for section in _sections(text, 0, len(text))])
    specials = np.array(list(_specials(text)), np.int32).reshape(-1, 2)
    if not len(specials):
        return words
    words = split_at(words, specials.ravel())
    before = np.searchsorted(specials[:, 0], words[:, 0], side="right") - 1  # the last special that starts before
    inside = (before >= 0) & (words[:, 0] < specials[before, 1])
    return np.sort(np.concatenate([words[~inside], specials]), axis=0, kind="stable")


def split_at(words: Spans, cuts: NDArray[np.integer]) -> Spans:
    """The words, split at every cut that lies inside a word."""
    starts, ends = words[:, 0], words[:, 1]
    cuts = np.unique(cuts)
    owner = np.searchsorted(starts, cuts, side="right") - 1
    inside = (owner >= 0) & (cuts > starts[owner]) & (cuts < ends[owner]) if len(words) else np.zeros(len(cuts), bool)
    cuts = cuts[inside].astype(np.int32)
    edges = (np.sort(np.concatenate([side, cuts]), kind="stable") for side in (starts, ends))
    return np.stack(list(edges), axis=1)


def is_unspaced(text: str) -> bool:
    """Whether any character belongs to a script without spaces between words."""
    return _unspaced().search(text) is not None


def join(tokens: Sequence[str], separator: str | None = None) -> tuple[str, list[tuple[int, int]]]:
    """The text made of tokens, and the offsets of each token in it.

    Tokens are joined by spaces, or directly when each of them is a single character and at least one belongs to a
    script without spaces, as in Chinese corpora.

    >>> join(["Marie", "Curie"])
    ('Marie Curie', [(0, 5), (6, 11)])
    >>> join(["北", "京", "A", "B"])[0]
    '北京AB'
    """
    if separator is None:
        by_character = all(len(token) == 1 for token in tokens) and any(map(is_unspaced, tokens))
        separator = "" if by_character else " "
    offsets, position = [], 0
    for token in tokens:
        offsets.append((position, position + len(token)))
        position += len(token) + len(separator)
    return separator.join(tokens), offsets
