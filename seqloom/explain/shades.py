"""Shades of a terminal: numbers as darker and lighter cells, and the pixels of pictures and films."""

from __future__ import annotations

from math import inf, log

from rich.text import Text

from seqloom.explain.record import PixelByPixel

SHADES = " ░▒▓█"


def shade(weight: float) -> str:
    return SHADES[min(int(max(weight, 0.0) * len(SHADES)), len(SHADES) - 1)]


def pixel_views(pixels: PixelByPixel | None, width: int) -> list[tuple[str, list[Text]]]:
    """The picture, how unlikely its pixels were, and what the pixel in the middle depends on."""
    if pixels is None:
        return []
    nats = [-each for each in pixels.log_probs]
    most = max((each for each in nats if each != inf), default=0.0) or 1.0
    total = sum(nats)
    cost = f"{total:.2f} nats, {total / len(nats) / log(2):.4f} bits per value"
    place = pixels.first
    field = pixels.fields.get(place, [])
    seen = f"{sum(map(bool, field)):,} of {place:,} before it"
    title = f"what value {place + 1:,} of {len(nats):,} depends on ({seen}): darker is more, + is itself"
    return [
        ("the output", pixel_map(pixels, [value / max(pixels.levels - 1, 1) for value in pixels.values], width)),
        (
            f"cost of each pixel: {cost}; darker is less likely",
            pixel_map(pixels, [min(each / most, 1.0) for each in nats], width),
        ),
        (title, pixel_map(pixels, [weight / 255 for weight in field], width, itself=place)),
    ]


def pixel_map(pixels: PixelByPixel, weights: list[float], width: int, itself: int = -1) -> list[Text]:
    """Shades of all pixels, the mean over channels; frames beside each other. Empty where there is no room."""
    cells = 2 if 2 * pixels.width <= width else 1
    if pixels.width * cells > width:
        return []
    channels, area = pixels.channels, pixels.height * pixels.width
    marks = []
    for place in range(pixels.frames * area):
        own = weights[place * channels : (place + 1) * channels]
        marks.append("+" if place == itself // channels else shade(sum(own) / len(own)) if own else " ")
    column = pixels.width * cells + 2
    panel = max((width + 2) // column, 1)
    lines: list[Text] = []
    for first in range(0, pixels.frames, panel):
        lines += [Text()] if first else []
        for row in range(pixels.height):
            starts = [frame * area + row * pixels.width for frame in range(first, min(first + panel, pixels.frames))]
            rows = ["".join(mark * cells for mark in marks[start : start + pixels.width]) for start in starts]
            lines.append(Text("  ".join(rows), style="blue"))
    return lines
