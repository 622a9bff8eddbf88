/* The n-best list: each output with its score, and what differs from the first in colour. */
import { choices, find, make } from "./dom.js";
import { number, signed, visible } from "./text.js";

/* The parts of `own`, those that are not in the longest common subsequence as marks. */
function markDifferences(first, own) {
  const common = Array.from({ length: own.length + 1 }, () => new Uint16Array(first.length + 1));
  for (let i = own.length - 1; i >= 0; i--)
    for (let j = first.length - 1; j >= 0; j--)
      common[i][j] = own[i] === first[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
  const parts = [];
  for (let i = 0, j = 0; i < own.length; ) {
    if (j < first.length && own[i] === first[j]) { parts.push(own[i++]); j++; }
    else if (j < first.length && common[i][j + 1] >= common[i + 1][j]) j++;
    else parts.push(make("mark", {}, own[i++]));
  }
  return parts;
}

/* Words with the space between them; letters where there is no space. */
function split(text) {
  if (/\s/.test(text)) return text.split(/(\s+)/);
  return [...new Intl.Segmenter().segment(text)].map((letter) => letter.segment);
}

export function nBestView({ hypotheses }, selection) {
  if (hypotheses.length < 2) return;
  find("#nbest").hidden = false;
  const best = hypotheses[0], first = split(visible(best.text));
  const buttons = hypotheses.map(({ text, score }, rank) => {
    const own = make("span", { class: "text", dir: "auto" });
    own.append(...markDifferences(first, split(visible(text))));
    const behind = rank && score !== null && best.score !== null ? signed(score - best.score) : "";
    const button = make("button");
    button.append(
      make("span", { class: "quiet" }, rank + 1), own,
      make("span", { class: "number" }, number(score)), make("span", { class: "number quiet" }, behind));
    return button;
  });
  const host = find("#nbest .ranking");
  host.append(...buttons);
  const mark = choices(host, "N-best list", buttons, (index) => selection.chooseHypothesis(index));
  selection.onHypothesis.push(() => mark(selection.hypothesis));
}
