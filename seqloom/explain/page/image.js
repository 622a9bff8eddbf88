/* A picture as the input: what each token of the output looked at, the rest of the picture veiled. */
import { choices, draw, find, make } from "./dom.js";
import { attends, label, percent } from "./text.js";

const DARKEST = 0.82;
const ATTENDED = "One picture per output token: the brighter a place, the more attention. Choose a token to see it large.";
const NOT_ATTENDED = "This model reads the whole picture once, before it writes, and has no attention to its places.";

export function imageView({ image, source, hypotheses }, selection) {
  if (!image) return;
  const section = find("#image"), host = section.querySelector(".seen"), readout = section.querySelector("output");
  const attended = hypotheses.some((hypothesis) => hypothesis.alignment.length);
  section.hidden = false;
  section.querySelector(".how").textContent = attended ? ATTENDED : NOT_ATTENDED;
  const whole = make("div", { class: "whole" }), words = make("div", { class: "words" });
  host.append(whole, words);
  let mark = () => {};

  /* The picture, each place under a veil that is the thinner, the more attention it has. */
  function seen(name, weights, titled) {
    const width = 100 * image.aspect, wide = width * image.columns, high = 100 * image.rows;
    const drawing = draw("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": name });
    const size = { width: wide, height: high, preserveAspectRatio: "none" };
    drawing.append(draw("image", { href: image.uri, ...size }));
    const largest = Math.max(...weights) || 1;
    weights.forEach((weight, place) => {
      const x = width * (place % image.columns), y = 100 * Math.floor(place / image.columns);
      const veil = draw("rect", { class: "veil", x, y, width, height: 100 });
      veil.setAttribute("fill-opacity", DARKEST * (1 - weight / largest));
      if (titled) veil.append(draw("title", {}, `${source[place]}: ${percent(weight)}`));
      drawing.append(veil);
    });
    return drawing;
  }

  function show() {
    const { tokens, alignment } = selection.current, { token } = selection;
    mark(token);
    const weights = alignment[token] ?? [];
    whole.replaceChildren(seen(weights.length ? `Attention of ${label(tokens[token])}` : "The input", weights, true));
    if (!weights.length) return;
    const most = weights.indexOf(Math.max(...weights));
    readout.textContent = `${attends(tokens[token], "most to", source[most], weights[most])}${image.names.length ? "" : " (row, column)"}`;
  }

  selection.onHypothesis.push(() => {
    const { tokens, alignment } = selection.current;
    readout.textContent = "";
    const buttons = alignment.map((weights, index) => {
      const button = make("button");
      button.append(seen(`Attention of ${label(tokens[index])}`, weights), make("span", { dir: "auto" }, label(tokens[index])));
      return button;
    });
    words.replaceChildren(...buttons);
    mark = choices(words, "Output tokens over the picture", buttons, (index) => selection.chooseToken(index), true);
    show();
  });
  selection.onToken.push(show);
}
