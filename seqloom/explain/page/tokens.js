/* Token by token: its probability, its runners-up, and its attention over the input. */
import { choices, find, make, shade } from "./dom.js";
import { label, percent, probability, quoted, rightToLeft } from "./text.js";

export function tokenView({ source, hypotheses, per_token, image }, selection) {
  const section = find("#tokens"), part = (name) => section.querySelector(name), chips = part(".chips");
  if (!hypotheses.some((hypothesis) => hypothesis.tokens.length)) return;
  section.hidden = false;
  section.classList.toggle("full", find("#alignment").hidden || find("#alignment").classList.contains("full"));
  let mark = () => {};

  function show() {
    const { tokens, runners_up, alignment, log_probs } = selection.current, { token: chosen } = selection;
    mark(chosen);
    part(".bars").replaceChildren();
    part(".sources").replaceChildren();
    part(".alternatives").textContent = part(".attended").textContent = "";
    if (!tokens.length) return;
    part(".alternatives").textContent = `alternatives at position ${chosen + 1}`;
    const listed = runners_up[chosen].some(([token]) => token === tokens[chosen]);
    const ranked = [...runners_up[chosen], ...(listed ? [] : [[tokens[chosen], probability(log_probs[chosen])]])];
    for (const [token, share] of ranked) {
      const kind = token === tokens[chosen] ? " chosen" : "";
      const track = make("span", { class: `track${kind}` }), fill = make("i");
      fill.style.width = `${share * 100}%`;
      track.append(fill);
      part(".bars").append(
        make("span", { class: `name${kind}`, dir: "auto" }, label(token)), track,
        make("span", { class: `value${kind}` }, percent(share)));
    }
    if (!alignment.length || image) return;
    part(".attended").textContent = `attention of ${quoted(tokens[chosen])} over the input`;
    const weights = alignment[chosen], largest = Math.max(...weights) || 1;
    part(".sources").append(...source.map((token, column) => {
      const element = make("span", { class: "token", title: percent(weights[column]) }, label(token));
      return shade(element, weights[column] / largest);
    }));
  }

  selection.onHypothesis.push(() => {
    const { tokens, log_probs } = selection.current;
    const buttons = tokens.map((token, index) => {
      const text = per_token ? `${label(source[index])} / ${label(token)}` : label(token);      // a tag with its word
      const share = probability(log_probs[index]), name = `${text}, ${percent(share)}`;
      const button = make("button", { class: "token", title: percent(share), "aria-label": name }, text);
      return shade(button, share ** 2);      // squared, so that 80 % and 99 % differ
    });
    chips.dir = rightToLeft(tokens) ? "rtl" : "ltr";
    part(".sources").dir = rightToLeft(source) ? "rtl" : "ltr";
    chips.replaceChildren(...buttons);
    mark = choices(chips, "Output tokens", buttons, (index) => selection.chooseToken(index), true);
    show();
  });
  selection.onToken.push(show);
}
