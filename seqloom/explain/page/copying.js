/* Decoders that copy: how much of each token's probability comes from copying. */
import { find, shadeTokens } from "./dom.js";
import { percent } from "./text.js";

export function copyingView({ hypotheses }, selection) {
  const section = find("#copying"), host = section.querySelector(".outputs");
  if (!hypotheses.some((hypothesis) => hypothesis.copied.length)) return;
  section.hidden = false;
  selection.onHypothesis.push(() => shadeTokens(host, selection.current.tokens, selection.current.copied, {
    number: (share) => `${Math.round(share * 100)} %`,
    title: (share) => `${percent(share)} of the probability comes from copying`,
    weight: (share) => share,
  }));
}
