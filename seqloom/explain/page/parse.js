/* Parse trees: constituents over the words of the input. */
import { draw, find, isStrong, textWidth } from "./dom.js";
import { label, percent, probability, quoted } from "./text.js";

const LEVEL = 46, GAP = 16;      // height of a level, room between words

/* Nodes come parents first and from left to right: words stand side by side, constituents above the middle of theirs. */
function layOut(nodes) {
  const children = nodes.map(() => []), depth = [], wide = nodes.map((node) => textWidth(label(node.label)) + 16);
  nodes.forEach(({ parent }, index) => {
    depth.push(parent < 0 ? 0 : depth[parent] + 1);
    if (parent >= 0) children[parent].push(index);
  });
  const floor = Math.max(...depth), middle = [];
  let x = 4;
  nodes.forEach(({ word, label: name }, index) => {
    if (children[index].length) return;
    let width = Math.max(textWidth(label(word)), name ? wide[index] : 0);
    for (let above = nodes[index].parent; above >= 0 && children[above].length === 1; above = nodes[above].parent)
      width = Math.max(width, wide[above]);      // constituents of this word alone
    middle[index] = x + width / 2;
    x += width + GAP;
    depth[index] = floor;
  });
  for (let index = nodes.length - 1; index >= 0; index--) {
    const inner = children[index];
    if (inner.length) middle[index] = (middle[inner[0]] + middle[inner.at(-1)]) / 2;
  }
  return { middle, wide, depth, width: x - GAP + 4, height: floor * LEVEL + 62 };
}

export function parseView({ hypotheses }, selection) {
  if (!hypotheses.some(({ parse }) => parse.length)) return;
  const section = find("#parse"), host = section.querySelector(".scroll"), readout = section.querySelector("output");
  section.hidden = false;
  let groups = [];

  /* The probability of both its brackets, or of its word. */
  const share = ({ begin, end }) => {
    const { log_probs } = selection.current, sure = (token) => probability(log_probs[token]);
    return begin === end ? sure(begin) : sure(begin) * sure(end);
  };

  function show() {
    const { parse, tokens, log_probs } = selection.current, { token } = selection;
    const chosen = parse.findIndex(({ begin, end }) => begin === token || end === token);
    groups.forEach((group, index) => group.classList.toggle("chosen", index === chosen));
    readout.textContent = `step ${token + 1}: ${quoted(tokens[token])}, ${percent(probability(log_probs[token]))}`;
  }

  function paint() {
    const { parse } = selection.current;
    host.replaceChildren();
    groups = [];
    if (!parse.length) return;
    const { middle, wide, depth, width, height } = layOut(parse);
    const drawing = draw("svg", { width, height, role: "img", "aria-label": "Parse tree" });
    const y = (index) => depth[index] * LEVEL + 16;
    drawing.append(...parse.flatMap(({ parent }, index) => parent < 0 ? [] : [draw("path", {
      class: "edge", d: `M${middle[parent]} ${y(parent) + 12}L${middle[index]} ${y(index) - 12}`,
    })]));
    groups = parse.map((node, index) => {
      const group = draw("g", { class: "phrase", transform: `translate(${middle[index]} ${y(index)})` });
      const text = (content, down, kind = "") =>
        draw("text", { y: down, class: kind, "text-anchor": "middle" }, label(content));
      if (node.word) group.append(...(node.label ? [text(node.label, 3, "quiet")] : []), text(node.word, node.label ? 21 : 4.5));
      else {
        const box = draw("rect", { class: "cell", x: -wide[index] / 2, y: -12, width: wide[index], height: 24, rx: 7 });
        box.style.setProperty("--weight", share(node));
        group.classList.toggle("strong", isStrong(share(node)));
        group.append(box, text(node.label, 4.5));
      }
      group.onpointerenter = group.onclick = () => selection.chooseToken(node.begin);
      return group;
    });
    drawing.append(...groups);
    host.append(drawing);
    show();
  }

  selection.onHypothesis.push(paint);
  selection.onToken.push(show);
}
