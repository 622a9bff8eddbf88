/* Input, output, and facts about the model; the switch between hypotheses. */
import { choices, find, make } from "./dom.js";
import { number, visible } from "./text.js";

export function header({ source_text, hypotheses: [best], model }) {
  document.title = `${visible(source_text || best.text)} · Seqloom`;
  find("header").hidden = false;
  find("#input").hidden = find(".arrow").hidden = !source_text;
  find("#input p").textContent = visible(source_text);
  find("#output p").textContent = visible(best.text) || "∅";
  for (const [name, value] of [["score", number(best.score)], ...Object.entries(model)]) {
    const pair = make("div");
    pair.append(make("dt", {}, name), make("dd", { dir: "auto" }, value));
    find("#facts").append(pair);
  }
}

export function hypothesisSwitch({ hypotheses }, selection) {
  if (hypotheses.length < 2) return;
  find("nav").hidden = false;
  const buttons = hypotheses.map((_, index) => make("button", {}, index + 1));
  find("nav .switch").append(...buttons);
  const mark = choices(find("nav .switch"), "Hypothesis", buttons, (index) => selection.chooseHypothesis(index));
  selection.onHypothesis.push(() => {
    mark(selection.hypothesis);
    find("nav p").textContent = visible(selection.current.text);
  });
}
