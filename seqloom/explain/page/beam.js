/* The beam as a tree: what the search kept at each step. */
import { draw, find, textWidth } from "./dom.js";
import { brief, label, number, percent } from "./text.js";

const LINE = 34;      // height of a row

/* A row for each node. A chain runs from a branching to its end along first children, in one row; late branches lie
   nearest to it. Children are in order already. */
function layOut(tree, roots, children) {
  const rowOf = [], taken = [];
  function lay(start, above) {
    const chain = [start];
    while (children[chain.at(-1)].length) chain.push(children[chain.at(-1)][0]);
    const [from, until] = [tree[start].step, tree[chain.at(-1)].step];
    let row = above;
    while ((taken[row] ??= []).some(([a, b]) => a <= until && from <= b)) row++;
    taken[row].push([from, until]);
    chain.forEach((index) => { rowOf[index] = row; });
    chain.toReversed().forEach((index) => children[index].slice(1).forEach((child) => lay(child, row + 1)));
  }
  roots.forEach((index) => lay(index, 0));
  return { rowOf, rows: taken.length };
}

export function beamView({ tree }) {
  if (!tree.length) return;
  const section = find("#beam"), host = section.querySelector(".scroll"), readout = section.querySelector("output");
  section.hidden = false;
  const children = tree.map(() => []), roots = [];
  tree.forEach((node, index) => (node.parent < 0 ? roots : children[node.parent]).push(index));
  const score = (index) => tree[index].score ?? -1e9;
  for (const nodes of [roots, ...children]) nodes.sort((a, b) => tree[b].best - tree[a].best || score(b) - score(a));
  const { rowOf, rows } = layOut(tree, roots, children);

  const labels = tree.map((node) => brief(node.token));
  const widths = labels.map((text) => Math.max(textWidth(text) + 16, 26));
  const stepNumbers = tree.map((node) => node.step), left = [];      // of a step: its x
  let x = 34;
  for (let step = Math.min(...stepNumbers); step <= Math.max(...stepNumbers); step++) {
    left[step] = x;
    const wide = tree.map((node, index) => node.step === step ? widths[index] + (node.finished ? 58 : 0) : 0);
    x += Math.max(0, ...wide) + 34;
  }
  const middle = (index) => rowOf[index] * LINE + 20, begin = (index) => left[tree[index].step];

  /* The probability of a node, given the one before it. */
  function share({ score, parent }) {
    const before = parent < 0 ? 0 : tree[parent].score;
    return score === null || before === null ? 0 : Math.min(Math.exp(score - before), 1);
  }

  function edge(node, index) {
    const { parent } = node;
    const [startX, startY] = parent < 0 ? [12, 20] : [begin(parent) + widths[parent], middle(parent)];
    const [endX, endY] = [begin(index), middle(index)], likely = share(node);
    const bend = endX - 17;      // turn just before the node, so that lines keep to their rows
    const turn = `L${endX - 32} ${startY} C${bend} ${startY} ${bend} ${endY} ${endX} ${endY}`;
    return draw("path", {
      class: node.best ? "edge best" : "edge", d: `M${startX} ${startY} ${startY === endY ? `L${endX} ${endY}` : turn}`,
      "stroke-width": 1 + 4 * likely, "stroke-opacity": node.best ? 0.45 + 0.55 * likely : 0.2 + 0.6 * likely,
    });
  }

  function box(node, index) {
    const group = draw("g", {
      class: `node${node.best ? " best" : ""}${node.finished ? " finished" : ""}`,
      transform: `translate(${begin(index)} ${middle(index)})`,
    });
    const width = widths[index];
    group.append(
      draw("rect", { x: 0, y: -12, width, height: 24, rx: 7 }),
      draw("text", { x: width / 2, y: 4.5, "text-anchor": "middle" }, labels[index]));
    if (node.finished)
      group.append(
        draw("circle", { class: "stop", cx: width + 9, cy: 0, r: 3.5 }),
        draw("text", { class: "quiet", x: width + 17, y: 4.5 }, number(node.score, 2)));
    group.onpointerenter = () => choose(index);
    return group;
  }

  const drawing = draw("svg", { width: x, height: rows * LINE + 8, role: "img", "aria-label": "Beam tree" });
  const root = draw("circle", { cx: 8, cy: 20, r: 4, class: "stop", fill: "var(--accent)" }), groups = tree.map(box);
  drawing.append(root, ...tree.map(edge), ...groups);
  host.append(drawing);

  let chosen = -1;
  const pathTo = (index) => index < 0 ? [] : [...pathTo(tree[index].parent), index];

  function describe(index) {
    const { score, finished } = tree[index], tokens = pathTo(index).map((at) => label(tree[at].token)).join(" ");
    readout.textContent = `\u2068${tokens}\u2069: ${percent(share(tree[index]))} given the tokens before it, `
      + `log-probability ${number(score)}${finished ? ", finished" : ""}`;
  }

  function choose(index) {
    const path = pathTo(index);
    groups.forEach((group, at) => {
      group.classList.toggle("chosen", at === index);
      group.classList.toggle("onpath", path.includes(at));
    });
    chosen = index;
    describe(index);
  }

  /* The nearest node of the same step, 1: below, -1: above. */
  const beside = (way) => tree.map((_, index) => index)
    .filter((index) => tree[index].step === tree[chosen].step && way * (rowOf[index] - rowOf[chosen]) > 0)
    .sort((a, b) => way * (rowOf[a] - rowOf[b]))[0];

  host.onkeydown = (event) => {
    const next = {
      ArrowRight: () => children[chosen][0], ArrowLeft: () => tree[chosen].parent,
      ArrowDown: () => beside(1), ArrowUp: () => beside(-1),
    }[event.key];
    if (!next) return;
    event.preventDefault();
    const index = chosen < 0 ? roots[0] : next();
    if (!(index >= 0)) return;
    choose(index);
    host.scrollTo({ left: begin(index) - host.clientWidth / 2 });
  };
  describe(Math.max(tree.findLastIndex((node) => node.best), 0));
}
