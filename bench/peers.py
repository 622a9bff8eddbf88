"""Other systems to compare with, each in an environment of its own under the cache folder.

    python -m bench.peers [all | NAME ...]

One environment holds torch, pinned by constraints.txt so that no CUDA build is installed; the others see it through a
.pth file. A peer whose own pins are stale is installed without its dependencies, and they are listed here. A peer that
cannot be installed or imported is reported with the reason.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from bench.measuring import Record
from bench.pairs import folder
from bench.pipe import HOME

BASE = ("torch", "numpy", "safetensors")


@dataclass(frozen=True)
class Peer:
    """What to install: with its dependencies, or alone, with those listed here."""

    package: str
    module: str  # that must import
    alone: bool = False
    beside: tuple[str, ...] = ()

    @property
    def distribution(self) -> str:
        return self.package.split("=")[0]


PEERS = {
    "transformers": Peer("transformers", "transformers.models.marian.modeling_marian"),
    "eole": Peer("eole", "eole.predict"),
    "opennmt": Peer(
        "OpenNMT-py==3.5.1",
        "onmt.translate",
        alone=True,  # it asks for torch < 2.3
        beside=(
            "configargparse",
            "ctranslate2>=4,<5",
            "fasttext-wheel",
            "flask",
            "pyahocorasick",
            "pyonmttok",
            "pyyaml",
            "rapidfuzz",
            "sacrebleu",
            "six",
            "spacy",
            "tensorboard",
            "waitress",
        ),
    ),
    "ctranslate2": Peer("ctranslate2", "ctranslate2"),
    "joeynmt": Peer(
        "joeynmt==2.3.0",
        "joeynmt.model",
        alone=True,  # it asks for an old protobuf
        beside=(
            "datasets",
            "importlib-metadata",
            "matplotlib",
            "packaging",
            "pandas",
            "pyyaml",
            "sacrebleu",
            "sacremoses",
            "sentencepiece",
            "subword-nmt",
            "tensorboard",
        ),
    ),
    "sockeye": Peer(
        "sockeye==3.1.34",
        "sockeye.inference",
        alone=True,  # it asks for torch < 1.14 and numpy < 2
        beside=("pyyaml", "sacrebleu"),
    ),
}
ALWAYS = ("transformers", "eole", "opennmt", "ctranslate2")


@dataclass(frozen=True)
class Installed:
    """An environment, or the reason why it is missing."""

    name: str
    python: Path
    version: str = ""
    reason: str = ""


def choose(names: list[str]) -> list[str]:
    """["all"]: all; []: those that always run; ["none"]: none."""
    if names == ["none"]:
        return []
    if names == ["all"]:
        return list(PEERS)
    return names or list(ALWAYS)


def install(names: list[str]) -> dict[str, Installed]:
    """Install the peers that are not installed yet."""
    return {name: install_peer(name) for name in names}


def install_peer(name: str) -> Installed:
    peer, place = PEERS[name], folder() / name
    python = place / "bin" / "python"
    mark = place / ".installed"
    try:
        if not mark.exists():
            print(f"installing {peer.package} into {place}", file=sys.stderr)
            environment(place, base())
            pip(python, *(["--no-deps"] if peer.alone else []), peer.package)
            if peer.beside:
                pip(python, *peer.beside)
            run(python, "-c", f"import {peer.module}")
            mark.touch()
        asked = f"from importlib import metadata; print(metadata.version({peer.distribution!r}))"
        return Installed(name, python, version=run(python, "-c", asked).strip())
    except (OSError, subprocess.CalledProcessError) as error:
        lines = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        return Installed(name, python, reason=lines[-1] if lines else "no reason given")


def base() -> Path:
    """The site-packages of the environment that has torch."""
    place = folder() / "base"
    python = place / "bin" / "python"
    if not (place / ".installed").exists():
        print(f"installing torch into {place}", file=sys.stderr)
        environment(place)
        pip(python, *BASE)
        (place / ".installed").touch()
    return Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())


def environment(place: Path, seen: Path | None = None) -> None:
    """A new environment that sees the packages of another."""
    if place.exists():
        shutil.rmtree(place)
    venv.create(place, with_pip=True)
    if seen:
        ours = run(place / "bin" / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
        (Path(ours) / "base.pth").write_text(f"{seen}\n", encoding="utf-8")


def pip(python: Path, *words: str) -> None:
    run(python, "-m", "pip", "install", "-q", "-c", str(HOME / "constraints.txt"), *words)


def run(python: Path, *words: str) -> str:
    return subprocess.run([str(python), *words], check=True, capture_output=True, text=True).stdout


def describe(peers: dict[str, Installed]) -> Record:
    """For a record: the version of each, or the reason why it is missing."""
    return {
        name: {"version": each.version} if not each.reason else {"failed": each.reason} for name, each in peers.items()
    }


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--peers",
        nargs="*",
        default=[],
        choices=[*PEERS, "all", "none"],
        help=f"systems to compare with; default: {', '.join(ALWAYS)}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description="Install the systems to compare with.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: {', '.join(ALWAYS)}")
    for name, each in install(choose(parser.parse_args().names)).items():
        print(f"{name}: {each.reason or each.version}")


if __name__ == "__main__":
    main()
