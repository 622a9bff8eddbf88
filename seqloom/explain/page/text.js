/* Tokens and numbers as people read them. */

const picture = (control) => String.fromCharCode(0x2400 + control.charCodeAt(0));
const spaces = { " ": "␣", "\n": "↵", "\t": "⇥" };
const rightToLeftStart = /^\P{L}*[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;

/* Text with its control characters as pictures, as the terminal shows it. */
export const visible = (text) => text.replace(/[\x00-\x1f]/g, picture);

/* A token on its own: white space must be seen. */
export const label = (token) => visible(token.replace(/[ \n\t]/g, (space) => spaces[space])) || "∅";

/* A token within a sentence, isolated: right-to-left tokens leave the sentence in order. */
export const quoted = (token) => `“\u2068${label(token)}\u2069”`;

export function brief(token, most = 14) {
  const letters = [...label(token)];
  return letters.length > most ? letters.slice(0, most - 1).join("") + "…" : letters.join("");
}

export const number = (value, digits = 3) => value === null ? "−∞" : value.toFixed(digits).replace("-", "−");

export const signed = (value) => (value > 0 ? "+" : "") + number(value);

export function percent(share) {
  const digits = share >= 0.9995 ? 0 : share >= 0.1 ? 1 : 2;
  return `${(digits ? share * 100 : 100).toFixed(digits)} %`;
}

/* "attends to" or "attends most to", with the weight. */
export const attends = (query, how, key, weight) =>
  `${quoted(query)} attends ${how} ${quoted(key)}: ${percent(weight)}`;

export const probability = (logProbability) => logProbability === null ? 0 : Math.min(Math.exp(logProbability), 1);

export const rightToLeft = (tokens) => rightToLeftStart.test(tokens.join(""));
