"""Make the dark versions of pictures of the documentation: `python tools/dark_pictures.py [--check]`.

Those in PICTURES have black text on white. In `NAME-dark.svg` or `NAME-dark.png` every colour has its hue and the
opposite lightness. The site shows the one that fits its theme; see docs/site_pages.py.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from colorsys import hls_to_rgb, rgb_to_hls
from pathlib import Path

import numpy as np
from PIL import Image

from onoma.files import atomic_write_bytes

IMAGES = Path(__file__).resolve().parent.parent / "docs/images"
PICTURES = ("data-flow.svg", "missing-labels.svg", "nerco-lengths-weibo.svg", "nerco-vectors-resume.png")
DARKEST, LIGHTEST = 0.08, 0.93
"""The lightness of white and of black in the dark version."""
PALEST = 0.36
"""By how much points of a PNG become lighter than the opposite of their colour."""
COLOUR = re.compile(r"#([0-9a-fA-F]{6})\b")


def opposite(red: float, green: float, blue: float) -> tuple[float, float, float]:
    """A colour of the same hue and the opposite lightness."""
    hue, lightness, saturation = rgb_to_hls(red, green, blue)
    return hls_to_rgb(hue, LIGHTEST - lightness * (LIGHTEST - DARKEST), saturation)


def dark_svg(svg: str) -> str:
    """An SVG with the opposite of each colour."""

    def replace(found: re.Match[str]) -> str:
        parts = bytes.fromhex(found.group(1))
        return "#" + bytes(round(255 * part) for part in opposite(*(one / 255 for one in parts))).hex()

    return COLOUR.sub(replace, svg)


def dark_png(content: bytes) -> bytes:
    """A PNG with the opposite of each colour."""
    pixels = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"), np.float64) / 255
    lightness = (pixels.max(-1) + pixels.min(-1)) / 2
    wanted = LIGHTEST - lightness * (LIGHTEST - DARKEST)
    chroma = pixels.max(-1) - pixels.min(-1)  # pale points would be dark on dark: all that has a colour becomes lighter
    wanted += np.minimum(chroma / 0.1, 1) * (PALEST - 0.4 * wanted)
    room = [np.minimum(one, 1 - one) for one in (lightness, wanted)]  # how far colours may be from grey
    scale = np.where(room[0] > 0, room[1] / np.maximum(room[0], 1e-9), 0.0)
    made = wanted[..., None] + (pixels - lightness[..., None]) * scale[..., None]
    buffer = io.BytesIO()
    Image.fromarray(np.rint(255 * made.clip(0, 1)).astype(np.uint8)).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def dark_name(path: Path) -> Path:
    """The file of the dark version."""
    return path.with_stem(f"{path.stem}-dark")


def dark_version(path: Path) -> bytes:
    """The content of the dark version."""
    content = path.read_bytes()
    return dark_png(content) if path.suffix == ".png" else dark_svg(content.decode()).encode()


def is_current(path: Path) -> bool:
    """Whether the dark version is that of the picture; of PNG, pixels count."""
    if not dark_name(path).exists():
        return False
    made, stored = dark_version(path), dark_name(path).read_bytes()
    if path.suffix == ".png":
        return np.array_equal(*(np.asarray(Image.open(io.BytesIO(one))) for one in (made, stored)))
    return made == stored


def main() -> None:
    """Write what has changed, or check it."""
    parser = argparse.ArgumentParser(description="Make the dark versions of pictures of the documentation.")
    parser.add_argument("--check", action="store_true", help="only check whether they are up to date")
    stale = [name for name in PICTURES if not is_current(IMAGES / name)]
    if parser.parse_args().check:
        sys.exit(f"no dark version of: {', '.join(stale)}. Fix: run python tools/dark_pictures.py" if stale else 0)
    for name in stale:
        with atomic_write_bytes(dark_name(IMAGES / name)) as file:
            file.write(dark_version(IMAGES / name))
        print(f"written: {dark_name(Path(name))}")


if __name__ == "__main__":
    main()
