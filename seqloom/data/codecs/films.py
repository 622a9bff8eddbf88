"""Films as frames and sound: of files (NPZ, GIF, and with PyAV MP4 and others), of sound files, and of arrays."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.data.codecs.files import is_path, read_content
from seqloom.data.codecs.pictures import pillow, refusing
from seqloom.data.codecs.sound import from_file as sound_of_file
from seqloom.data.codecs.sound import from_python
from seqloom.errors import SeqloomError, UnreadableError, one_line, shown

MOST_BYTES, KIND = 2**30, "film"  # of a file, and what it should be; also of an array in it
KEYS = ("frames", "fps", "sound", "rate")  # of an NPZ file, or of a dictionary
EXPECTED_FRAMES = "expected uint8 from 0 to 255 of the shape [frames, height, width] or [frames, height, width, 3]"
EXPECTED = "expected the path of a film (NPZ, GIF, MP4, AVI, MKV, MOV, WebM), or of its sound (WAV, FLAC)"
SOUND_FILES = (".wav", ".flac")
Scale = Callable[[np.ndarray], np.ndarray]  # of frames (n, H, W, 1 or 3)
WITHOUT_SOUND: np.ndarray = np.zeros(0, dtype=np.float32)


@dataclass(frozen=True)
class Film:
    """What a value holds, as it was recorded. Either may be missing: frames None, or a sound without samples."""

    name: str
    frames: np.ndarray | None  # uint8 (T, H, W, 1 or 3)
    fps: float | None  # None: as the codec has it
    sound: tuple[np.ndarray, int] | None  # samples of one channel, (n,), and their rate

    @property
    def seconds_of_sound(self) -> float:
        return 0.0 if self.sound is None else len(self.sound[0]) / self.sound[1]


def read_film(value: Any, *, scale: Scale, frames: int, pixels: int, seconds: float, rate: int) -> Film:
    """A film of at most so many frames, each of at most so many pixels, or a file of sound that lasts so many seconds.

    Frames of files are scaled as they are decoded, for a minute of large ones would fill the memory. An array of sound
    has that rate.
    """
    if not is_path(value):
        return of_python(value, "the film", frames, pixels, rate)
    name, suffix = str(value), Path(value).suffix.lower()
    if suffix in SOUND_FILES:
        return Film(name, None, None, sound_of_file(value, seconds=seconds))
    content = read_content(value, MOST_BYTES, KIND)
    if suffix == ".npz":
        return of_python(arrays_of(name, content), name, frames, pixels, rate)
    if content[:4] == b"GIF8":
        found, fps = of_gif(name, content, scale, frames, pixels)
        return Film(name, found, fps, None)
    if suffix == ".gif":
        raise UnreadableError(f"{name} is not a readable film (no GIF file); {EXPECTED}")
    return of_container(name, content, scale, frames, pixels)


def of_python(value: Any, name: str, frames: int, pixels: int, rate: int) -> Film:
    """An array of frames, or a dictionary with `frames`, `fps`, `sound` and `rate`, of which some may be missing."""
    if not isinstance(value, dict):
        value = {"frames": value}
    if unknown := [key for key in value if key not in KEYS]:
        raise UnreadableError(f"{name} has {shown(unknown[0])}; expected some of {', '.join(KEYS)}")
    found = None if value.get("frames") is None else as_frames(value["frames"], name, frames, pixels)
    return Film(name, found, number(value, "fps", name), sound_of(value, name, rate))


def sound_of(value: dict[str, Any], name: str, rate: int) -> tuple[np.ndarray, int] | None:
    """The samples of a dictionary, and their rate."""
    if value.get("sound") is None:
        return None
    sound, own = value["sound"], number(value, "rate", name)
    try:
        return from_python(sound if isinstance(sound, tuple) or own is None else (sound, own), rate)
    except UnreadableError as error:
        raise UnreadableError(f"{name}: {error}") from None


def number(value: dict[str, Any], key: str, name: str) -> float | None:
    """A positive number of a dictionary; None where it is missing."""
    if value.get(key) is None:
        return None
    try:
        found = float(np.asarray(value[key]).reshape(()))
    except (TypeError, ValueError):
        found = -1.0
    if not 0 < found < 1e6:
        raise UnreadableError(f"{name}: {key} is {shown(value[key])}; expected a number above 0")
    return found


def as_frames(value: Any, name: str, most: int, pixels: int) -> np.ndarray:
    """An array, a tensor, or a list of frames of one size.  uint8 (T, H, W, 1 or 3)"""
    try:
        array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    except ValueError:
        sizes = list(dict.fromkeys(np.shape(frame) for frame in value))[:2]
        change = " and ".join("[" + ", ".join(map(str, size)) + "]" for size in sizes)
        raise UnreadableError(f"{name} has frames of changing size ({change}); expected one size") from None
    if array.ndim == 3:
        array = array[:, :, :, None]
    if array.ndim != 4 or array.shape[3] not in (1, 3) or 0 in array.shape[1:]:
        raise UnreadableError(f"{name} has frames of the shape {list(np.shape(value))}; {EXPECTED_FRAMES}")
    if array.dtype.kind not in "iu" or (array.size and (array.min() < 0 or array.max() > 255)):
        found = f"{array.dtype} values" if array.dtype.kind not in "iu" else f"{array.min()} to {array.max()}"
        raise UnreadableError(f"{name} has frames that hold {found}; {EXPECTED_FRAMES}")
    check_size(name, len(array), array.shape[1] * array.shape[2], most, pixels)
    return array.astype(np.uint8)


def check_size(name: str, frames: int, pixels: int, most_frames: int, most_pixels: int) -> None:
    if frames > most_frames:
        raise UnreadableError(
            f"{name} has more than {most_frames:,} frames (max_seconds): cut it with --truncate (in Python "
            "truncate=True), split it, or raise max_seconds in the recipe or the run's config.toml"
        )
    if pixels > most_pixels:
        raise too_many_pixels(name, most_pixels)


def too_many_pixels(name: str, most: int) -> UnreadableError:
    return UnreadableError(
        f"{name} has frames of more than {most:,} pixels (max_pixels): make them smaller, or raise max_pixels"
    )


def gif(film: np.ndarray, fps: float) -> bytes:
    """A film as an animated GIF that repeats. Each frame has up to 256 colours.  uint8 (T, H, W) or (T, H, W, 3)

    Written frame by frame: Pillow writes frames that are equal only once.
    """
    library = pillow()
    from PIL import GifImagePlugin

    images = [library.Image.fromarray(frame) for frame in film]
    images = [image.convert("P") if image.mode == "L" else image.quantize(256, dither=0) for image in images]
    options: Any = {"duration": round(1000 / fps), "loop": 0, "include_color_table": True, "disposal": 1}
    header, _ = GifImagePlugin.getheader(images[0].copy(), info=options)
    frames = [part for image in images for part in GifImagePlugin.getdata(image, **options)]
    return b"".join([*header, *frames, b";"])


# -- files


def arrays_of(name: str, content: bytes) -> dict[str, np.ndarray]:
    """The arrays of an NPZ file that a film may have. Nothing is unpacked that is too large, and no objects are."""
    expected = f"expected arrays {', '.join(KEYS)} as numpy.savez writes them"
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            known = {f"{key}.npy": key for key in KEYS}
            members = [member for member in archive.infolist() if member.filename in known]
            if sum(member.file_size for member in members) > MOST_BYTES:
                raise UnreadableError(f"{name} unpacks to more than {MOST_BYTES:,} bytes; expected a smaller film")
            found = {}
            for member in members:
                with archive.open(member) as file:
                    unpacked = io.BytesIO(file.read(MOST_BYTES + 1))
                found[known[member.filename]] = np.lib.format.read_array(unpacked, allow_pickle=False)
    except SeqloomError:
        raise
    except Exception as error:  # of a damaged archive anything may be raised
        raise UnreadableError(f"{name} is not a readable NPZ file ({one_line(error)}); {expected}") from None
    if not found.keys() & {"frames", "sound"}:
        raise UnreadableError(f"{name} has neither frames nor sound; {expected}")
    return found


def of_gif(name: str, content: bytes, scale: Scale, most: int, pixels: int) -> tuple[np.ndarray, float | None]:
    """The frames of an animated GIF and how many there are per second, from the mean time that one is shown."""
    library = pillow()
    try:
        with refusing(name, "film", EXPECTED):
            image = library.Image.open(io.BytesIO(content), formats=("GIF",))
            check_size(name, 0, image.width * image.height, most, pixels)
            frames, shown_for = [], 0.0
            for frame in range(getattr(image, "n_frames", 1)):
                check_size(name, frame + 1, 0, most, pixels)
                image.seek(frame)
                frames.append(scale(np.asarray(image.convert("RGB"))[None]))
                shown_for += image.info.get("duration", 0) / 1000
    except library.UnidentifiedImageError:
        raise UnreadableError(f"{name} is not a readable film (unknown format); {EXPECTED}") from None
    except library.Image.DecompressionBombError:
        raise too_many_pixels(name, pixels) from None
    return np.concatenate(frames), len(frames) / shown_for if shown_for else None


def of_container(name: str, content: bytes, scale: Scale, most: int, pixels: int) -> Film:
    """The first stream of pictures and the first of sound of an MP4 or another container."""
    av = pyav(name)
    try:
        with av.open(io.BytesIO(content), metadata_errors="replace") as container:
            video = next(iter(container.streams.video), None)
            frames: list[np.ndarray] = []
            if video is not None:
                check_size(name, 0, video.codec_context.width * video.codec_context.height, most, pixels)
            for picture in container.decode(video) if video is not None else ():
                check_size(name, len(frames) + 1, picture.width * picture.height, most, pixels)
                frames.append(scale(picture.to_ndarray(format="rgb24")[None]))
            fps = float(video.average_rate) if video is not None and video.average_rate else None
        with av.open(io.BytesIO(content), metadata_errors="replace") as container:
            audio = next(iter(container.streams.audio), None)
            sound = None if audio is None else (np.concatenate([*samples(av, container, audio)]), audio.rate)
    except SeqloomError:
        raise
    except Exception as error:  # of a damaged file a decoder may raise anything
        raise UnreadableError(f"{name} is not a readable film ({one_line(error)}); {EXPECTED}") from None
    if not frames and sound is None:
        raise UnreadableError(f"{name} has neither frames nor sound; {EXPECTED}")
    return Film(name, np.concatenate(frames) if frames else None, fps, sound)


def samples(av: Any, container: Any, audio: Any) -> Iterator[np.ndarray]:
    """The samples of a stream of sound, of one channel.  (n,) each"""
    yield WITHOUT_SOUND
    resampler = av.AudioResampler(format="flt", layout="mono")
    for block in container.decode(audio):
        yield from (piece.to_ndarray()[0].astype(np.float32) for piece in resampler.resample(block))
    yield from (piece.to_ndarray()[0].astype(np.float32) for piece in resampler.resample(None))


def pyav(name: str) -> Any:
    """The library of the extra "video"."""
    try:
        import av
    except ImportError:
        raise SeqloomError(
            f'{name}: films other than NPZ and GIF need the extra "video": pip install "seqloom[video]"'
        ) from None
    av.logging.set_level(av.logging.PANIC)  # damaged files are reported once, by us
    return av
