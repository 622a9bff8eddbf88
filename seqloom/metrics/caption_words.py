"""The words of a caption, as the captioning literature counts them: Penn Treebank tokens in lower case, no punctuation.

This is what coco-caption (Chen et al. 2015, section 3.1) makes of English with Stanford's tokeniser: "The man's dog
doesn't swim." is the, man, 's, dog, does, n't, swim. Brackets are left out, too; there they stay, by a slip, as
-lrb-. Of the 40,000 captions of Flickr8k 10 others differ, most by an abbreviation with its period, such as "mr.".
"""

from __future__ import annotations

import re

CLITICS = r"(?:n't|'(?:s|re|ve|ll|d|m))(?!\w)"
TOKENS = re.compile(
    rf"{CLITICS}"
    r"|can(?=not\b)"
    r"|(?:[a-z]\.){2,}"  # u.s.
    r"|\d+(?:[.,:/]\d+)+"  # 1,000
    rf"|\w(?:(?!{CLITICS})(?:\w|[-'.](?=\w)))*"
    r"|[$#@&%=+*]"
)


def caption_words(text: str) -> list[str]:
    """In lower case."""
    return TOKENS.findall(text.lower().replace("’", "'"))
