"""Writes docs/systems.md: every system with its paper, lecture, file, recipe, command, result and picture.

python docs/systems.py            writes the page
python docs/systems.py --check    exits with an error if the page is out of date

Papers are read from the docstrings of the files, descriptions from the recipes, figures and gates from results/*.json.
Only what no file holds is in the table below: the subject, the lecture, and which figure is the headline.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "systems.md"
# "Vinyals, Fortunato & Jaitly 2015", "van den Oord et al. 2016", "Elman 1990"
NAME = r"(?:van den )?[A-Z][\w'-]+"
CITATION = re.compile(rf"{NAME}(?:, {NAME})*(?:,? & {NAME}| et al\.)? (?:19|20)\d\d")


@dataclass(frozen=True)
class System:
    """One row of the table."""

    name: str
    lecture: str
    file: str  # below seqloom/
    paper: str  # which citation of the file, by a part of it; "": the first; "-": none
    recipe: str
    study: str
    variant: str  # of the study
    figure: str  # a metric of the variant or the text of a gate; "": the first metric
    command: str  # where no study trains it
    picture: str  # below docs/images/, where it is not that of the study

    def citation(self) -> str:
        found = citations(self.file)
        if self.paper == "-" or not found:
            return "-"
        return next(each for each in found if self.paper in each)

    def how(self) -> str:
        """The command that makes it."""
        if self.command:
            return f"`{self.command}`"
        return f"`seqloom reproduce {self.study}`" if self.study else f"`seqloom train {self.recipe}`"

    def image(self) -> str:
        """The picture's name, if there is one."""
        drawn = self.picture or f"{self.study}.png"
        return drawn if self.picture or (self.study and (ROOT / "docs" / "images" / drawn).exists()) else ""

    def result(self) -> str:
        """The headline figure, and how many of the gates that concern it were met."""
        if not self.study:
            return "-"
        found = record(self.study)
        if found is None or (self.variant and self.variant not in {row["variant"] for row in found["rows"]}):
            return "not run yet"
        figure, value = headline(found, self.variant, self.figure)
        gates = [gate for gate in found["gates"] if concerns(gate["text"], self.variant, found)]
        met = sum(gate["met"] for gate in gates)
        verdict = f"{met} of {len(gates)} gates met" if gates else "no gate"
        if len(gates) == 1 and gates[0]["text"] in (figure, f"{self.variant} {figure}"):
            verdict = f"gate {gates[0]['gate']} {'met' if met else '**not met**'}"
        elif len(gates) == 1:
            verdict = "gate met" if met else "gate **not met**"
        return f"{figure}: {value:.4g}; {verdict}"

    def row(self) -> str:
        recipe = (
            f'[{self.recipe}](../seqloom/recipes/{self.recipe}.toml "{describe(self.recipe)}")' if self.recipe else "-"
        )
        picture = f"[picture](images/{self.image()})" if self.image() else "-"
        file = f"[{self.file}](../seqloom/{self.file})"
        cells = (self.name, self.citation(), self.lecture, file, recipe, self.how(), self.result(), picture)
        return f"| {' | '.join(cells)} |"


# system | lecture | file | paper | recipe | study / variant / figure, or $ command | picture
TABLE = """
## Recurrent cells
Elman network | 001, 002 | nn/cells/elman.py | | adding | adding / tanh
LSTM | 001, 002 | nn/cells/lstm.py | | adding | adding / lstm
LSTM, forget bias 1 | 001 | nn/cells/lstm.py | Jozefowicz | counting | counting / lstm-b
LSTM without a gate | 001 | nn/cells/lstm.py | Jozefowicz | arithmetic | arithmetic / lstm-f
GRU | 001 | nn/cells/gru.py | | counting | counting / gru
MUT1 to MUT3 | 001 | nn/cells/mut.py | | arithmetic | arithmetic / mut1
XML | 001 | nn/cells/mut.py | Jozefowicz | xml | xml / mut1
Arithmetic as a running text | 001 | tasks/text.py | - | arithmetic-text | arithmetic-text / mut1
Vanishing gradients | 001 | analysis/gradients.py | | | $ gradients RECIPE ... --out gradients.png | gradients.png
Gradient check | 002 | analysis/gradcheck.py | | | $ gradcheck RECIPE
## Encoder and decoder
Encoder-decoder | 001 to 004 | nn/decoders/recurrent.py | | addition | addition / plain
Reversed source | 002 | nn/encoders/recurrent.py | | addition | addition / reversed
Context at every step | 003 | nn/decoders/recurrent.py | Cho et al. | addition | addition / reversed and fed
Bidirectional encoder | 001 | nn/encoders/recurrent.py | Bahdanau | g2p-lstm | g2p-lstm
Deep residual LSTMs (GNMT) | 000 | nn/decoders/gnmt.py | | gnmt | gnmt
Fast-forward LSTMs (Deep-Att) | 000 | nn/encoders/deep_att.py | | multi30k-deep-att | translation / Deep-Att + PosUnk
Refinement for GLEU (GNMT) | 000 | metrics/gleu.py | | gnmt-refined | gnmt-refined / refined
SCAN commands, LSTM | - | nn/decoders/recurrent.py | | scan-lstm | scan / lstm simple
ConvS2S | 000 | nn/decoders/conv_s2s.py | Gehring | multi30k-conv-s2s | translation / ConvS2S
SCAN commands, ConvS2S | 000 | nn/encoders/conv_s2s.py | Gehring | scan-conv-s2s | scan / conv-s2s simple
ByteNet | 000 | nn/decoders/byte_net.py | Kalchbrenner | multi30k-byte-net | translation / ByteNet
Ensemble | 000 | nn/combine/ensemble.py | Sutskever | | translation / Transformer, ConvS2S
## Attention
Additive | 001 to 004 | nn/attention/additive.py | | dates | dates-attention / attention | alignment.png
Dates, the demo | - | nn/attention/additive.py | | dates | dates
Additive with coverage | - | nn/attention/additive.py | Tu | django | django / copying
Bilinear | 001, 002 | nn/attention/bilinear.py | | multi30k-lstm | multi30k-attention / attention
Translation with attention | 001 to 004 | nn/attention/bilinear.py | | multi30k-lstm | multi30k-lstm
Dot, scaled dot | 001, 003 | nn/attention/dot.py | | | $ train dates --set decoder.attention=dot --set decoder.size=256
Key and query networks | 001, 004 | nn/attention/projected.py | | | $ train dates --set decoder.attention=projected
Multi-head | 003 | nn/attention/multihead.py | | | $ train dates --set decoder.attention=multihead
## Transformers
Transformer | 000, 003 | nn/encoders/transformer.py | | multi30k-transformer | multi30k-transformer
Transformer, letters to phonemes | - | nn/encoders/transformer.py | | g2p-transformer | g2p-transformer
SCAN commands, Transformer | - | nn/encoders/transformer.py | | scan-transformer | scan / transformer simple
Masked words and next sentences (BERT) | 003 | nn/heads/masked.py | | bert | bert-brown / / masked_accuracy
GPT | 003 | nn/decoders/transformer.py | Radford | text-gpt | shakespeare-gpt / / nats_per_token
## Language models
Lines of text | 002 | tasks/pairs.py | - | char-lm
Running text, characters | 002 | tasks/text.py | | text-lstm | shakespeare-lstm / / nats_per_token
Running text, words | 001, 002 | tasks/text.py | Zaremba | word-lstm | ptb-lstm / / test_perplexity
Last-word prediction | 001, 004 | studies/measures/texts.py | - | word-lstm | last-word
Polyphonic music, by cell | 001 | nn/decoders/vectors.py | Chung | music | music / jsb lstm
Speech signals, by cell | 001 | nn/layers/densities.py | Bishop | speech-signal | speech-signal / lstm
Pointer sentinel | 000 | nn/decoders/sentinel.py | | word-sentinel | sentinel / sentinel / test_perplexity
Sampling | 002 | search/sample.py | | | $ generate RUN --temperature 0.8
## Search
Beam search | 000, 004 | search/beam.py | - | multi30k-lstm | decoding / / beam_5_bleu
Shallow fusion | - | nn/combine/shallow_fusion.py | | | $ predict RUN --lm LM
Noisy channel | 000 | nn/combine/noisy_channel.py | | g2p-ssnt | noisy-channel / direct / channel_lm_wer
Rescoring | 000 | inference/rescoring.py | - | | $ predict RUN --rescore LM
## Objectives
Cross-entropy | 000, 002 | objectives/cross_entropy.py | | g2p-small | objectives / cross-entropy
Scheduled sampling | 000 | objectives/scheduled_sampling.py | | g2p-small | objectives / scheduled sampling
Data as demonstrator (DAD), Ranzato's | 000 | objectives/dad.py | Ranzato | g2p-small | objectives / DAD
Data as demonstrator, the original | 000 | objectives/rollouts.py | | g2p-small | demonstrator / original DAD
End-to-end back-propagation | 000 | objectives/end_to_end.py | | g2p-small | objectives / E2E
RAML | 000 | objectives/raml.py | | g2p-small | objectives / RAML, Hamming
RAML, two modes | 000 | objectives/raml.py | | modes | modes / RAML / RAML, the smaller mode and its neighbours
Expected reward | 000 | objectives/expected_reward.py | | g2p-small | objectives / expected reward
Minimum risk | - | objectives/minimum_risk.py | | g2p-small | objectives / minimum risk
MIXER | 000 | objectives/mixer.py | | g2p-mixer | from-scratch / MIXER / exact
Beam-search optimisation | 000 | objectives/margin.py | | reordering | reordering / BSO / bleu_5
Output is a bag of words | 000 | search/constraints/bag.py | | reordering | reordering / constrained BSO / bag_bleu_5
## Pointing and copying
Pointer network, convex hulls | 000 | nn/decoders/pointer.py | | hull | hull / pointer
Pointer network, longer sources | 000 | nn/decoders/pointer.py | | hull | hull-lengths / / area, n = 50
Pointer network, tours | 000 | nn/decoders/pointer.py | | tour | tour / n = 10
Pointer network, triangulations | 000 | nn/decoders/pointer.py | | delaunay | delaunay
Pointer-generator | - | nn/decoders/copy.py | | pointer-generator | copying / pointer-generator / oov_recall
Pointing the unknown words | 000 | nn/decoders/copy.py | Gulcehre | pointer-generator | copying / switch / oov_recall
Unknown words replaced | 000 | inference/rescoring.py | - | rare-words | copying / plain / replaced_oov_recall
Parsing as a sequence | 000 | data/codecs/tree.py | | parsing | parsing
Headlines with copying | 000 | nn/decoders/copy.py | See | headlines | headlines / copying with coverage / rouge1
Headlines by SSNT | 000 | nn/decoders/ssnt.py | | headlines | headlines / SSNT / rouge1
Papers in one sentence | - | nn/decoders/copy.py | See | headlines | scitldr / copying with coverage / rouge1
Code generation with copying | 001 | nn/decoders/copy.py | | django | django / copying
Code generation without | 001 | nn/decoders/recurrent.py | - | django-plain | django / plain
## Sets, stories, depth
Sets: read, process, write | 000 | nn/encoders/set.py | | sorting | sorting / P = 10
Sets in any order | 000 | objectives/any_order.py | | sorting | $ train sorting --set objective=any_order
End-to-end memory network | 000 | nn/encoders/memory_network.py | | babi | babi / / error, mean of 20 tasks
Hierarchical encoder (HRED) | 003 | nn/encoders/hierarchical.py | Serban | hred | dialogue / HRED / test_perplexity
HRED, a slot three turns back | 003 | nn/encoders/hierarchical.py | Serban | slots | slots / HRED
Attention-sum reader | 000 | nn/heads/reader.py | | cloze | cloze / one fact, sum
Adaptive computation time | 000 | nn/cells/adaptive.py | | parity | parity / adaptive
Adaptive computation time, price of a step | 000 | nn/cells/adaptive.py | | parity | parity-prices / 0.0003 / steps
Adaptive computation time in a decoder | 000 | nn/cells/adaptive.py | | text-adaptive | pondering / adaptive
Adaptive depth | - | nn/encoders/transformer.py | Dehghani | | $ train scan-transformer --set encoder.adaptive=true
Mixture of experts | 000 | nn/layers/experts.py | | piecewise | experts / experts
MultiModel | 000 | nn/multi_task.py | Kaiser | multi-model | multi-model / together / trees bracket_f1
Mixture of experts, translation | 000 | nn/layers/experts.py | | multi30k-experts | translation / MoE
Labels of sentences | - | nn/heads/label.py | | labels | trec / 3 minutes / accuracy
Labels of sentences, opinions | - | nn/heads/label.py | | labels | sst2 / 5 minutes / accuracy
Tags of words, random field | - | nn/heads/tags.py | | tags | chunks / 8 minutes / chunk_f1
Words by their spelling | - | nn/encoders/spelling.py | | tags | wnut / 5 minutes / chunk_f1
Minutes, no recipe: translation | - | config/budget.py | - | multi30k-transformer | quick-multi30k / 20 minutes
Minutes, no recipe: short sentences | - | config/budget.py | - | multi30k-lstm | quick-tatoeba / 10 minutes
Minutes, no recipe: code | - | config/budget.py | - | django | quick-django / 15 minutes
Minutes, no recipe: phonemes | - | config/budget.py | - | g2p-lstm | quick-g2p / 6 minutes
Regression from a sequence | - | nn/heads/value.py | Hochreiter | adding | adding / gru
## Pictures
Captions, features as the first state | 004 | nn/encoders/image.py | | captions-start | scenes / first state
Captions, features as the first input | 004 | nn/layers/bridge.py | Vinyals | captions-first | scenes / first input
Captions, attention over the picture | 000, 004 | nn/encoders/image.py | Xu | captions-attention | scenes / attention
Captions of photographs | 004 | nn/encoders/image.py | Xu | captions-attention | flickr / attention
PixelCNN | 000 | nn/layers/pixel_cnn.py | | pixels | binary-digits / plain / nats
PixelCNN, gated | 000 | nn/layers/pixel_cnn.py | Vinyals | pixels | binary-digits / gated / nats
PixelRNN, Row LSTM | 000 | nn/layers/pixel_rnn.py | | pixels | small-digits / Row LSTM / nats
PixelRNN, Diagonal BiLSTM | 000 | nn/layers/pixel_rnn.py | | pixels | small-digits / Diagonal BiLSTM / nats
## Sound sample by sample
WaveNet | 000 | nn/decoders/wave_net.py | | wave | digit-waves / WaveNet / bits_per_dimension
WaveNet of a digit | 000 | nn/decoders/wave_net.py | | wave | digit-waves / WaveNet of a digit
## Films
Video Pixel Network | 000 | nn/decoders/video_pixels.py | | frames | moving-sprites / VPN / nats_per_frame
VPN without dependence in a frame | 000 | nn/layers/independent.py | - | frames | moving-sprites / independent pixels
Convolutional LSTM | 000 | nn/layers/film_memory.py | | frames | moving-sprites / ConvLSTM / nats_per_frame
LSTM over frames | 000 | nn/layers/film_memory.py | Srivastava | frames | moving-sprites / LSTM / nats_per_frame
Video Pixel Network, digits | 000 | nn/decoders/video_pixels.py | | frames | moving-digits / VPN / nats_per_frame
Lip reading: watch, attend and spell | 000 | nn/encoders/video.py | | lips | lips / WAS / greedy_cer
Lip reading, short texts first | 000 | tasks/pairs.py | - | lips | lips / WAS + CL / greedy_cer
Lip reading, scheduled sampling | 000 | objectives/scheduled_sampling.py | | lips | lips / WAS + CL + SS / greedy_cer
Lip reading with sound | 000 | nn/attention/several.py | | lips-and-sound | lips / WLAS / both_cer
Lip reading while lips move (LipNet) | - | nn/encoders/video.py | - | lips-ctc | lips / LipNet (CTC) / cer
## Online models and speech
Sequence transducer (RNN-T) | 000 | nn/decoders/transducer.py | | speech-transducer | spoken-digits / transducer
CTC | - | nn/decoders/ctc.py | | speech-ctc | spoken-digits / CTC
Neural Transducer | 000 | nn/decoders/neural_transducer.py | | speech-blocks | spoken-digits / Neural Transducer
Listen, Attend, Spell | 000 | nn/encoders/pyramidal.py | | speech-attention | spoken-digits / listen, attend and spell
Segment to segment (SSNT) | 000 | nn/decoders/ssnt.py | | g2p-ssnt | g2p-online / SSNT / exact
Monotonic attention | 000 | nn/attention/monotonic.py | | g2p-monotonic | g2p-online / monotonic attention / exact
Stochastic emissions | 000 | nn/decoders/emission.py | | delayed-copy | delayed-copy
Wait-k | - | nn/combine/wait_k.py | | cipher | cipher / wait-k / exact, k = 3
Wait-k, translation | - | objectives/wait_k.py | | multi30k-online | simultaneous / / bleu, k = 3
Read and write agent | 000 | nn/decoders/agent.py | Gu | cipher-agent | cipher / agent
Causal convolution encoder | 000 | nn/encoders/convolution.py | | | $ train speech-ctc --set encoder=convolution
Self-attention in chunks | - | nn/encoders/chunked.py | | | $ train speech-ctc --set encoder=chunked
SpecAugment | - | data/codecs/spec_augment.py | | | $ train speech-ctc
"""

# Named in the lectures and not in the package yet.
MISSING = """
Video pixel network | Kalchbrenner et al. 2017 | 000
Trainable greedy decoding | Gu, Cho & Li 2017 | 000
BERT: pre-training and fine-tuning heads | Devlin et al. 2019 | 003
"""


def subjects() -> dict[str, list[System]]:
    """The rows of the table by subject."""
    found: dict[str, list[System]] = {}
    for line in TABLE.strip().splitlines():
        if line.startswith("## "):
            found[line.removeprefix("## ")] = []
            continue
        name, lecture, file, paper, recipe, made, picture = [*map(str.strip, line.split("|")), *[""] * 7][:7]
        study, variant, figure = [*map(str.strip, made.split("/")), "", ""][:3]
        command = f"seqloom {made.removeprefix('$ ')}" if made.startswith("$ ") else ""
        study = "" if command else study
        found[list(found)[-1]].append(
            System(name, lecture, file, paper, recipe, study, variant, figure, command, picture)
        )
    return found


@cache
def citations(file: str) -> list[str]:
    """The papers that the docstring of a file names, in order."""
    text = ast.get_docstring(ast.parse((ROOT / "seqloom" / file).read_text(encoding="utf-8"))) or ""
    return CITATION.findall(" ".join(text.split()))


@cache
def record(study: str) -> dict[str, Any] | None:
    path = ROOT / "results" / f"{study}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def describe(recipe: str) -> str:
    """The first comment of a recipe, as the title of a link."""
    first = (ROOT / "seqloom" / "recipes" / f"{recipe}.toml").read_text(encoding="utf-8").partition("\n")[0]
    return first.lstrip("# ").replace('"', "'").replace("|", "/")


def concerns(gate: str, variant: str, found: dict[str, Any]) -> bool:
    """Whether the text of a gate names the variant, and not only a longer name that contains it."""
    for other in {row["variant"] for row in found["rows"]}:
        if variant and variant in other and other != variant:
            gate = gate.replace(other, "")
    return not variant or re.search(rf"(?<![\w-]){re.escape(variant)}(?![\w-])", gate) is not None


def headline(found: dict[str, Any], variant: str, figure: str) -> tuple[str, float]:
    """A metric of the variant, its mean over seeds; or the value of a gate."""
    rows = [row["measured"] for row in found["rows"] if row["variant"] == variant and row.get("chosen", True)]
    figure = figure or next(iter(rows[0]))
    if rows and figure in rows[0]:
        return figure, sum(row[figure] for row in rows) / len(rows)
    return figure, next(gate["value"] for gate in found["gates"] if gate["text"] == figure)


def page() -> str:
    lines = [
        "# Systems",
        "",
        "Every system, by subject. Written by `python docs/systems.py`; do not edit.",
        "The lecture is where a system is taught, the file is the part that makes it what it is, and the result is the",
        "headline figure of its study with the gates that concern it; [results](results.md) has all figures and",
        "[notes](results-notes.md) what explains them. `seqloom train` needs `--data` and `--out` as well",
        "([your own data](guide/your-own-data.md)).",
    ]
    for subject, systems in subjects().items():
        lines += ["", f"## {subject}", ""]
        lines += ["| system | paper | lecture | file | recipe | command | result | picture |", f"|{'---|' * 8}"]
        lines += [system.row() for system in systems]
    lines += ["", "## Not built yet", "", "| system | paper | lecture |", "|---|---|---|"]
    lines += [f"| {line} |" for line in MISSING.strip().splitlines()]
    return "\n".join(lines) + "\n"


def main() -> None:
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page() else f"{PAGE} is out of date")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
