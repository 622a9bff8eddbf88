/* Memory networks: the attention of each hop over the sentences of a story. */
import { find, make, shade } from "./dom.js";
import { percent } from "./text.js";

/* Whether the source is sentences and the output one answer, as in `explain.terminal`. */
export const isStory = ({ source, hypotheses: [{ tokens, source_attention }] }) =>
  tokens.length === 1 && source_attention.length > 0 && source.some((token) => token.includes(" "));

export function storyView(explanation) {
  if (!isStory(explanation)) return;
  find("#story").hidden = false;
  const hops = explanation.hypotheses[0].source_attention.map((heads) => heads[0][0]);      // hops x sentences
  const table = make("table"), head = make("tr");
  head.append(make("th"), ...hops.map((_, hop) => make("th", {}, `hop ${hop + 1}`)));
  table.append(head, ...explanation.source.map((sentence, row) => {
    const line = make("tr");
    line.append(make("td", { dir: "auto" }, sentence), ...hops.map((weights) => {
      const cell = make("td", { class: "hop" }), text = weights[row] >= 0.0005 ? percent(weights[row]) : "";
      cell.append(shade(make("span", { class: "token" }, text), weights[row]));
      return cell;
    }));
    return line;
  }));
  find("#story .story").append(table);
}
