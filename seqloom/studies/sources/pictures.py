"""Pictures with captions. Tables are written after the pictures that they name: where there is one, it is complete."""

from __future__ import annotations

import gzip
import zipfile
from functools import cache
from pathlib import Path

from seqloom.studies.sources.files import data_set, write_file
from seqloom.studies.study import Splits

SCENES = {"train": (0, 20_000), "valid": (20_000, 500), "test": (20_500, 1_000)}  # the first, and how many
FLICKR = {"train": "train", "valid": "dev", "test": "test"}


def scene_pictures(folder: Path) -> Splits:
    """Generated scenes of 32 x 32 pixels."""
    from seqloom.data.generators.catalogue import make_examples, write_examples

    home, made = folder / "scenes", []
    for name, (first, count) in SCENES.items():
        table = home / f"{name}.tsv"
        if not table.exists():
            home.mkdir(parents=True, exist_ok=True)
            write_examples(table, make_examples("scenes", count, 1, {}, first), first)
        made.append([str(table)])
    return Splits(*made)


@cache  # several runs ask for it
def flickr(folder: Path) -> Splits:
    """Flickr8k (Hodosh, Young & Hockenmaier 2013) at 64 x 64 pixels, five captions for each picture, standard split."""
    home, made = folder / "flickr8k-64px", []
    for name, split in FLICKR.items():
        table = home / f"{name}.tsv"
        if not table.exists():
            with gzip.open(data_set("flickr8k-64px", f"{split}.captions.tsv.gz"), "rt", encoding="utf-8") as file:
                rows = [line.rstrip("\n").split("\t") for line in file]
            unpack(home / name, {picture for picture, _, _ in rows})
            write_file(home, table.name, "".join(f"{name}/{picture}\t{caption}\n" for picture, _, caption in rows))
        made.append([str(table)])
    return Splits(*made)


def unpack(folder: Path, names: set[str]) -> None:
    """The pictures of one split, without the folders of the archive."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(data_set("flickr8k-64px", "images64.zip")) as archive:
        for member in archive.namelist():
            name = member.rpartition("/")[2]
            if name in names:
                (folder / name).write_bytes(archive.read(member))
