/* Online models: how much of the input had been read when each token was written, over text or a spectrogram. */
import { draw, find, heatMap, leaningHeight, onResize, textWidth } from "./dom.js";
import { brief, quoted } from "./text.js";

const ROW = 26;

export function timingView({ source, hypotheses, picture: sound, seconds }, selection) {
  const section = find("#timing"), host = section.querySelector(".stage"), readout = section.querySelector("output");
  const positions = sound.length || source.length;
  if (!positions || !hypotheses.some((hypothesis) => hypothesis.times.length)) return;
  section.hidden = false;
  const moment = (time) => seconds ? `${(time * seconds).toFixed(2)} s` : `${time} of ${positions} tokens`;
  let marks = [];

  function spectrogram(width, height) {
    const bands = sound[0].map((_, band) => sound.map((frame) => frame[band])).reverse();      // low frequencies below
    const canvas = heatMap(bands, "--ink", { "aria-hidden": "true" });
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    return canvas;
  }

  function show() {
    const { tokens, times } = selection.current, { token } = selection;
    marks.forEach((mark, index) => mark.classList.toggle("chosen", index === token));
    if (!times.length) return;
    readout.textContent = `${quoted(tokens[token])} was written when ${moment(times[token])} had been read`;
  }

  function paint() {
    const { tokens, times } = selection.current, width = host.clientWidth;
    host.replaceChildren();
    readout.textContent = "";
    marks = [];
    if (!times.length || !width) return;
    const each = width / positions, labels = source.map((token) => brief(token));
    const leaning = !sound.length && Math.max(...labels.map(textWidth)) > each - 4;
    const top = sound.length ? 140 : leaning ? leaningHeight(labels) : 26, height = top + 14 + tokens.length * ROW;
    const drawing = draw("svg", { width, height, role: "img", "aria-label": "How much was read before each token" });
    if (sound.length) host.append(spectrogram(width, top - 22));
    if (seconds) {
      const every = [0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60].find((step) => step / seconds * each > 44) ?? 300;
      for (let at = 0; at / seconds * each < width - 34; at += every)
        drawing.append(draw("text", { class: "quiet", x: at / seconds * each, y: top - 5 }, `${+at.toFixed(1)} s`));
    } else labels.forEach((text, index) => {
      const x = (index + 0.5) * each;
      drawing.append(draw("text", leaning
        ? { transform: `translate(${x} ${top - 6}) rotate(-50)` }
        : { x, y: top - 8, "text-anchor": "middle" }, text));
    });
    const at = (time) => Math.min(time, positions) * each, y = (index) => top + 4 + (index + 0.5) * ROW;
    const stair = times.map((time, index) => ` H ${at(time)} V ${y(index) + ROW / 2}`).join("");
    drawing.append(draw("path", { class: "stair", d: `M 0 ${y(0) - ROW / 2}${stair}` }));
    tokens.forEach((token, index) => {
      const text = brief(token), wide = textWidth(text) + 14, line = at(times[index]);
      const x = Math.max(0, Math.min(line - wide / 2, width - wide));
      const mark = draw("g", { class: "written" });
      mark.append(
        draw("line", { x1: line, x2: line, y1: sound.length ? 0 : top, y2: y(index) }),
        draw("rect", { x, y: y(index) - 10, width: wide, height: 20, rx: 7 }),
        draw("text", { x: x + wide / 2, y: y(index) + 4.5, "text-anchor": "middle" }, text));
      mark.onpointerenter = mark.onclick = () => selection.chooseToken(index);
      marks.push(mark);
      drawing.append(mark);
    });
    host.append(drawing);
    show();
  }

  selection.onHypothesis.push(paint);
  selection.onToken.push(show);
  onResize(host, paint);
}
