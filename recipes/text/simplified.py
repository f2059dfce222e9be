"""Make the table of simplified characters from the character tables of OpenCC:

    pip install opencc==1.4.2
    python recipes/text/simplified.py [--output src/onoma/text/simplified.txt]

The table has two lines of the same length: characters, and what each of them becomes. A pair is left out if

- one of the two is beyond the basic plane: encoders do not know these characters;
- the first one is in GB 2312, the usual characters of simplified text. 乾, 著 or 瞭 are simplified in some words and
  stay in others; `ALWAYS_SIMPLIFIED` lists those that simplified text hardly ever contains;
- the second one would itself be replaced, so that folding twice changes nothing.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from opencc import OpenCC

from onoma.files import atomic_write

IDEOGRAPHS = ((0x3400, 0x4DC0), (0x4E00, 0xA000), (0xF900, 0xFB00))
CONVERSIONS = ("t2s", "hk2s", "tw2s")  # general, then variants of Hong Kong and Taiwan
ALWAYS_SIMPLIFIED = "夥後徵於菸麽"


def main() -> None:
    """Convert all characters one by one, and write the pairs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("src/onoma/text/simplified.txt"))
    arguments = parser.parse_args()
    pairs = simplified_characters()
    with atomic_write(arguments.output) as file:
        file.writelines("".join(line) + "\n" for line in (pairs.keys(), pairs.values()))
    print(f"{len(pairs)} pairs written to {arguments.output}")


def simplified_characters() -> dict[str, str]:
    """The pairs of the table, in the order of the characters."""
    pairs: dict[str, str] = {}
    for name in reversed(CONVERSIONS):
        converter = OpenCC(name)
        converted = {one: converter.convert(one) for one in candidates()}
        pairs |= {one: other for one, other in converted.items() if other != one and other <= "\uffff"}
    return {one: other for one, other in sorted(pairs.items()) if other not in pairs}


def candidates() -> list[str]:
    """The characters that may be replaced."""
    ideographs = (chr(code) for low, high in IDEOGRAPHS for code in range(low, high))
    return [one for one in ideographs if one in ALWAYS_SIMPLIFIED or not is_usual(one)]


def is_usual(character: str) -> bool:
    """Whether a character is in GB 2312."""
    try:
        character.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return True


if __name__ == "__main__":
    main()
