"""Show a picture under every corruption: `python -m vitscope.corruptions PICTURE SHEET`."""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from vitscope.corruptions import GROUPS, SEVERITIES
from vitscope.corruptions.kinds import corrupt
from vitscope.errors import VitscopeError
from vitscope.files.images import as_picture, decode_image

LINE, GAP = 14, 4


def main() -> None:
    """Write a sheet with a row for each group and the uncorrupted picture at the top right."""
    parser = argparse.ArgumentParser(prog="python -m vitscope.corruptions", description=__doc__)
    parser.add_argument("picture", type=Path, help="an image file")
    parser.add_argument("sheet", type=Path, help="the PNG file to write")
    parser.add_argument("--severity", type=int, choices=SEVERITIES, default=3)
    parser.add_argument("--side", type=int, default=224, help="pixels of a side, 224 if left out")
    given = parser.parse_args()
    try:
        picture = decode_image(given.picture, str(given.picture))
    except VitscopeError as error:
        parser.exit(1, f"vitscope: {error}\n")
    shorter = min(picture.size)
    left, top = ((length - shorter) // 2 for length in picture.size)
    box = (left, top, left + shorter, top + shorter)
    picture = picture.resize((given.side, given.side), Image.Resampling.BICUBIC, box)
    pixels = np.asarray(picture).transpose(2, 0, 1)[None]
    rows = [
        [
            (name, as_picture(corrupt(pixels, name, given.severity, [0])[0].transpose(1, 2, 0)))
            for name in group
        ]
        for group in GROUPS.values()
    ]
    rows[0].append(("no corruption", picture))
    wide, high = given.side + GAP, given.side + LINE + GAP
    sheet = Image.new("RGB", (max(map(len, rows)) * wide, len(rows) * high), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(10)
    for row, tiles in enumerate(rows):
        for column, (name, tile) in enumerate(tiles):
            pen.text((column * wide, row * high), name.replace("_", " "), "black", font)
            sheet.paste(tile, (column * wide, row * high + LINE))
    # Save with a palette, since noise compresses badly.
    sheet.quantize(256).save(given.sheet, optimize=True)


if __name__ == "__main__":
    main()
