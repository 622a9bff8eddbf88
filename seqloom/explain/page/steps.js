/* Adaptive computation time: how many steps the model made at each token. */
import { find, shadeTokens } from "./dom.js";

export function stepsView({ source, hypotheses, steps }, selection) {
  const section = find("#steps"), all = [steps, ...hypotheses.map((hypothesis) => hypothesis.steps)].flat();
  if (!all.length) return;
  section.hidden = false;
  const [least, most] = [Math.min(...all), Math.max(...all)];
  const fill = (name, tokens, counts) => shadeTokens(section.querySelector(`.${name}`), tokens, counts, {
    number: (count) => count,
    title: (count) => `${count} step${count === 1 ? "" : "s"}`,
    weight: (count) => most > least ? (count - least) / (most - least) : 0.5,
  });
  section.querySelector("h3.input").hidden = !steps.length;
  selection.onHypothesis.push(() => {
    fill("inputs", source, steps);
    section.querySelector("h3.output").hidden = !selection.current.steps.length;
    fill("outputs", selection.current.tokens, selection.current.steps);
  });
}
