/* Points in the plane: what an output chooses among them, over the truth. */
import { draw, find, isStrong, onResize } from "./dom.js";
import { percent, probability, quoted } from "./text.js";

const WIDEST = 620, HIGHEST = 460;

export function pointsView({ points }, selection) {
  const section = find("#points"), host = section.querySelector(".plane"), readout = section.querySelector("output");
  if (!points) return;
  section.hidden = false;
  const { where, outputs, truth, triangles } = points, many = where.length > 30, radius = many ? 4 : 11;
  let marks = [], shapes = [];

  function show() {
    const { tokens, alignment, log_probs } = selection.current, { token } = selection;
    marks.forEach((mark, place) => {
      const weight = alignment[token]?.[place] ?? 0;
      mark.classList.toggle("chosen", outputs[selection.hypothesis][token] === place);
      mark.classList.toggle("strong", isStrong(weight));
      mark.firstChild.style.setProperty("--weight", weight);
    });
    shapes.forEach((shape, index) => shape.classList.toggle("chosen", triangles && index === Math.floor(token / 3)));
    readout.textContent = `step ${token + 1}: ${quoted(tokens[token])}, ${percent(probability(log_probs[token]))}`;
  }

  function paint() {
    const places = outputs[selection.hypothesis], width = Math.min(host.clientWidth, WIDEST), edge = radius + 6;
    host.replaceChildren();
    if (!width) return;
    const [lowX, lowY] = [0, 1].map((axis) => Math.min(...where.map((point) => point[axis])));
    const [highX, highY] = [0, 1].map((axis) => Math.max(...where.map((point) => point[axis])));
    const scale = Math.min((width - 2 * edge) / (highX - lowX || 1), (HIGHEST - 2 * edge) / (highY - lowY || 1));
    const height = (highY - lowY) * scale + 2 * edge;
    const at = (place) => [edge + (where[place][0] - lowX) * scale, height - edge - (where[place][1] - lowY) * scale];
    const drawing = draw("svg", { width, height, role: "img", "aria-label": "Points, and the output among them" });
    const line = (way, kind, closed) => {
      const corners = way.map((place) => at(place).join(" ")).join("L");
      const path = draw("path", { class: `way ${kind}`, d: `M${corners}${closed ? "Z" : ""}` });
      drawing.append(path);
      return path;
    };
    const lines = (chosen, kind) => {
      if (!triangles) return chosen.length ? [line(chosen, kind, false)] : [];
      const triangle = (_, at) => line(chosen.slice(3 * at, 3 * at + 3), `${kind} triangle`, true);
      return Array.from({ length: Math.floor(chosen.length / 3) }, triangle);
    };
    lines(truth, "truth");
    shapes = lines(places, "");
    marks = where.map((_, place) => {
      const [x, y] = at(place), mark = draw("g", { class: "stop-place" });
      mark.append(draw("circle", { class: "cell", cx: x, cy: y, r: radius }));
      mark.append(many ? draw("title", {}, place) : draw("text", { x, y: y + 4.5, "text-anchor": "middle" }, place));
      mark.onpointerenter = mark.onclick = () => {
        if (places.includes(place)) selection.chooseToken(places.indexOf(place));
      };
      drawing.append(mark);
      return mark;
    });
    host.append(drawing);
    show();
  }

  selection.onHypothesis.push(paint);
  selection.onToken.push(show);
  onResize(host, paint);
}
