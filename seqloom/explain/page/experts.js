/* Mixture of experts: which experts each token used, layer by layer. */
import { find, make, shadeTokens } from "./dom.js";

export function expertsView({ source, hypotheses, experts }, selection) {
  const section = find("#experts"), all = [experts, ...hypotheses.map((hypothesis) => hypothesis.experts)];
  const most = Math.max(1, ...all.flatMap((layers) => Object.values(layers).flat(2)));
  if (!all.some((layers) => Object.keys(layers).length)) return;
  section.hidden = false;
  const fill = (name, tokens, layers) => section.querySelector(`.${name}`).replaceChildren(
    ...Object.entries(layers).flatMap(([layer, used]) => {
      const host = make("div", { class: "tokens" });
      shadeTokens(host, tokens, used, {
        number: (numbers) => numbers.join(" "),
        title: (numbers) => `${layer}: experts ${numbers.join(", ")}`,
        weight: ([first]) => first / most,
      });
      return [make("p", { class: "how" }, layer), host];
    }));
  section.querySelector("h3.input").hidden = !Object.keys(experts).length;
  selection.onHypothesis.push(() => {
    fill("inputs", source, experts);
    section.querySelector("h3.output").hidden = !Object.keys(selection.current.experts).length;
    fill("outputs", selection.current.tokens, selection.current.experts);
  });
}
