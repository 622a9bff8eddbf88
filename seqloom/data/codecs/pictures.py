"""Pictures as pixels: of files, arrays and PIL's images of any size: upright, in 8 bits, of the wanted size."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import ceil, sqrt
from typing import Any, Literal

import numpy as np

from seqloom.data.codecs.files import is_path, read_content
from seqloom.errors import SeqloomError, UnreadableError, one_line, shown

Fit = Literal["exact", "crop", "stretch", "pad"]
FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "PPM")  # those that Pillow decodes by itself, without programs
MOST_BYTES, KIND = 2**28, "picture"  # of a file, and what it should be
MARGIN = 127  # the grey around a picture that is padded: the middle between black and white
EXPECTED = "expected a complete picture (PNG, JPEG, GIF, WebP, BMP, TIFF or PPM)"
EXPECTED_ARRAY = "expected uint8 from 0 to 255 of the shape [height, width] or [height, width, 3]"


def pixels(value: Any, *, mode: Literal["RGB", "L"], height: int, width: int, fit: Fit, most: int) -> np.ndarray:
    """A picture of at most `most` pixels in the wanted size.  uint8 (height, width, 3 or 1)"""
    library = pillow()
    name = str(value) if is_path(value) else "the picture"
    if is_path(value):
        image = read_header(name, read_content(value, MOST_BYTES, KIND), most)
        image.draft(mode, (2 * width, 2 * height))  # a JPEG may be decoded at an eighth of its size
    elif isinstance(value, library.Image.Image):
        image = check_header(name, value, most)
    else:
        image = from_array(value, most)
    with refusing(name):
        image.load()
        image = upright(image)
        if fit == "exact":
            refuse_other(image, name, mode, height, width)
        image = plain(image, name, mode)
        return np.array(resize(image, height, width, fit)).reshape(height, width, -1)


def read_header(name: str, content: bytes, most: int) -> Any:
    """The image of a file, which is not decoded yet."""
    library = pillow()
    try:
        with refusing(name):
            image = library.Image.open(io.BytesIO(content), formats=FORMATS)
            return check_header(name, image, most)
    except library.UnidentifiedImageError:
        raise UnreadableError(f"{name} is not a readable picture (unknown format); {EXPECTED}") from None
    except library.Image.DecompressionBombError:
        raise too_many_pixels(name, "", most) from None


def check_header(name: str, image: Any, most: int) -> Any:
    """Refuse too many pixels before any are decoded, and several frames."""
    if image.width * image.height > most:
        raise too_many_pixels(name, f" ({image.width:,} x {image.height:,})", most)
    if getattr(image, "is_animated", False) and image.format != "MPO":  # a JPEG with a preview
        raise UnreadableError(f"{name} is animated, or has several pages; expected one picture")
    return image


def refuse_other(image: Any, name: str, mode: str, height: int, width: int) -> None:
    """Refuse a picture of another size, and a grey one in place of a coloured one."""
    if image.size != (width, height):
        raise UnreadableError(
            f"{name} has {image.width:,} x {image.height:,} pixels; expected {width:,} x {height:,}, or set fit in the "
            'recipe, for example fit = "crop"'
        )
    if mode == "RGB" and len(image.getbands()) < 3 and image.mode != "P":
        raise UnreadableError(f'{name} is grey; expected a picture in colour, or set grey = true or fit = "crop"')


def too_many_pixels(name: str, size: str, most: int) -> UnreadableError:
    return UnreadableError(
        f"{name} has more than {most:,} pixels{size} (max_pixels): make it smaller, or raise max_pixels"
    )


@contextmanager
def refusing(name: str, kind: str = KIND, expected: str = EXPECTED) -> Iterator[None]:
    """One line for whatever Pillow makes of a broken file, and no warnings."""
    library = pillow()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except (SeqloomError, library.UnidentifiedImageError, library.Image.DecompressionBombError):
            raise
        except Exception as error:  # of a damaged file a decoder may raise anything
            raise UnreadableError(f"{name} is not a readable {kind} ({one_line(error)}); {expected}") from None


def from_array(value: Any, most: int) -> Any:
    """An array, a tensor or lists of lists as an image."""
    try:
        array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    except ValueError:  # lists of different lengths
        raise UnreadableError(f"the picture {shown(value)} is ragged; {EXPECTED_ARRAY}") from None
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] != 3) or not array.size:
        raise UnreadableError(f"the picture {shown(value)} has the shape {list(array.shape)}; {EXPECTED_ARRAY}")
    if array.dtype.kind not in "iu" or array.min() < 0 or array.max() > 255:
        found = f"{array.dtype} values" if array.dtype.kind not in "iu" else f"{array.min()} to {array.max()}"
        raise UnreadableError(f"the picture {shown(value)} holds {found}; {EXPECTED_ARRAY}")
    if array.shape[0] * array.shape[1] > most:
        raise too_many_pixels("the picture", f" ({array.shape[1]:,} x {array.shape[0]:,})", most)
    return pillow().Image.fromarray(array.astype(np.uint8))


def upright(image: Any) -> Any:
    """Turned as its EXIF data says; as it is where that cannot be read."""
    try:
        return pillow().ImageOps.exif_transpose(image)
    except Exception:  # damaged EXIF data of a picture that is whole
        return image


def plain(image: Any, name: str, mode: str) -> Any:
    """In 8 bits, "RGB" or "L", on white where it is transparent."""
    image_class = pillow().Image
    if image.mode.startswith("I;16"):
        image = image_class.fromarray((np.array(image).astype(np.uint16) >> 8).astype(np.uint8))
    elif image.mode in ("I", "F"):
        raise UnreadableError(f"{name} has pixels of 32 bits; expected 8 or 16 bits for each colour")
    elif image.has_transparency_data:
        white = image_class.new("RGBA", image.size, "white")
        image = image_class.alpha_composite(white, image.convert("RGBA"))
    return image.convert(mode)


def resize(image: Any, height: int, width: int, fit: Fit) -> Any:
    """The picture in the wanted size: its middle, the whole out of proportion, or the whole with margins."""
    if image.size == (width, height):
        return image
    if fit == "stretch":
        return image.resize((width, height))
    if fit == "crop":
        return pillow().ImageOps.fit(image, (width, height))
    scale = min(width / image.width, height / image.height)
    small = image.resize((max(round(scale * image.width), 1), max(round(scale * image.height), 1)))
    padded = pillow().Image.new(image.mode, (width, height), (MARGIN,) * len(image.getbands()))
    padded.paste(small, ((width - small.width) // 2, (height - small.height) // 2))
    return padded


def side_by_side(pictures: Sequence[np.ndarray]) -> np.ndarray:
    """Pictures of one size in a nearly square grid, with grey lines between them.  uint8 (H, W) or (H, W, 3) each"""
    columns = ceil(sqrt(len(pictures)))
    height, width = (size + 1 for size in pictures[0].shape[:2])
    lines = ceil(len(pictures) / columns)
    grid = np.full((lines * height - 1, columns * width - 1, *pictures[0].shape[2:]), MARGIN, dtype=np.uint8)
    for number, picture in enumerate(pictures):
        top, left = number // columns * height, number % columns * width
        grid[top : top + height - 1, left : left + width - 1] = picture
    return grid


def png(array: np.ndarray) -> bytes:
    """A picture as a PNG file.  uint8 (H, W, 3 or 1)"""
    file = io.BytesIO()
    pillow().Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array).save(file, "PNG", optimize=True)
    return file.getvalue()


def pillow() -> Any:
    """The library of the extra "pictures"."""
    try:
        import PIL
        import PIL.Image
        import PIL.ImageOps
    except ImportError:
        raise SeqloomError('pictures need the extra "pictures": pip install "seqloom[pictures]"') from None
    return PIL
