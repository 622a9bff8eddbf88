/* Attention, head by head: a square for each, and the one chosen as lines from queries to keys. */
import { choices, draw, find, heatMap, make, shade } from "./dom.js";
import { isStory } from "./story.js";
import { attends, label } from "./text.js";

const FAINTEST = 0.02;      // thinner lines cannot be seen

export function attentionView(explanation, selection) {
  const { source, encoder_attention, image } = explanation;
  const filled = (heads) => heads.length && heads[0].length && heads[0][0].length;
  const written = () => selection.current.tokens, read = () => ["<bos>", ...written().slice(0, -1)];
  const views = [
    { name: "input → input", heads: () => encoder_attention, queries: () => source, keys: () => source },
    { name: "output → input", heads: () => selection.current.source_attention, queries: written, keys: () => source },
    { name: "output → output", heads: () => selection.current.self_attention, queries: written, keys: read },
  ].filter((view) => filled(view.heads()) && !(image && view.keys() === source && view.heads().flat().length === 1));
  if (!views.length || isStory(explanation)) return;
  const section = find("#attention"), host = section.querySelector(".heads"), lines = section.querySelector(".lines");
  section.hidden = false;
  let view = views[0], layer = 0, head = 0, query = 2;

  const tabs = views.map(({ name }) => make("button", {}, name));
  section.querySelector(".views").append(...tabs);
  const markView = choices(section.querySelector(".views"), "Attention", tabs, (index) => {
    view = views[index];
    layer = head = 0;
    paint();
  });

  function thumbnail(matrix) {
    const largest = Math.max(...matrix.flat()) || 1;
    return heatMap(matrix.map((row) => row.map((weight) => weight / largest)), "--accent");
  }

  function paint() {
    const heads = view.heads();
    markView(views.indexOf(view));
    host.replaceChildren();
    lines.replaceChildren();
    if (!filled(heads)) return;
    const buttons = [], where = [];
    host.style.setProperty("--square", heads[0].length > 4 ? "36px" : "48px");
    heads.forEach((matrices, depth) => {
      const row = make("div", { class: "row" });
      row.append(make("span", {}, `layer ${depth + 1}`));
      matrices.forEach((matrix, index) => {
        const title = `layer ${depth + 1}, head ${index + 1}`;
        const button = make("button", { title, "aria-label": title });
        button.append(thumbnail(matrix));
        row.append(button);
        buttons.push(button);
        where.push([depth, index]);
      });
      host.append(row);
    });
    const mark = choices(host, "Layer and head", buttons, (index) => {
      [layer, head] = where[index];
      mark(index);
      drawLines();
    });
    mark(where.findIndex(([depth, index]) => depth === layer && index === head));
    drawLines();
  }

  function drawLines() {
    const matrix = view.heads()[layer][head], queries = view.queries(), keys = view.keys();
    const rows = Math.max(queries.length, keys.length), height = rows > 30 ? 20 : 27;
    section.querySelector("h3").textContent = `layer ${layer + 1}, head ${head + 1}`;
    lines.style.setProperty("--row", `${height}px`);
    const from = make("div", { class: "column" }), to = make("div", { class: "column" });
    const buttons = queries.map((token) => make("button", { dir: "auto" }, label(token)));
    const targets = keys.map((token) => make("span", { dir: "auto" }, label(token)));
    from.append(...buttons);
    to.append(...targets);
    const drawing = draw("svg", {
      viewBox: `0 0 100 ${rows * height}`, preserveAspectRatio: "none", style: `height: ${rows * height}px`,
      "aria-hidden": "true",
    });
    const paths = matrix.map((row, start) => row.map((weight, end) => {
      if (weight < FAINTEST) return null;
      const [y, endY] = [(start + 0.5) * height, (end + 0.5) * height];
      const path = draw("path", { d: `M0 ${y} C45 ${y} 55 ${endY} 100 ${endY}` });
      drawing.append(path);
      return path;
    }));
    lines.replaceChildren(from, drawing, to);
    const mark = choices(from, "Query", buttons, choose, true);
    function choose(index) {
      query = index;
      mark(query);
      const weights = matrix[query], largest = Math.max(...weights);
      paths.forEach((row, start) => row.forEach((path, end) => {
        const weight = matrix[start][end];
        path?.setAttribute("stroke-width", start === query ? 1 + 5 * weight : 1);
        path?.setAttribute("stroke-opacity", start === query ? 0.25 + 0.75 * weight : 0.3 * weight);
      }));
      targets.forEach((target, at) => shade(target, weights[at] / (largest || 1)));
      const key = keys[weights.indexOf(largest)];
      section.querySelector("output").textContent = attends(queries[query], "most to", key, largest);
    }
    choose(Math.min(query, queries.length - 1));
  }

  selection.onHypothesis.push(paint);
}
