/* The alignment as a heat map: one row per output token, one column per input token. */
import { draw, find, leaningHeight, onResize, textWidth } from "./dom.js";
import { isStory } from "./story.js";
import { attends, brief, rightToLeft } from "./text.js";

export function alignmentView(explanation, selection) {
  const { source, hypotheses } = explanation;
  const section = find("#alignment"), host = section.querySelector(".map"), readout = section.querySelector("output");
  if (isStory(explanation) || explanation.image || !hypotheses.some((hypothesis) => hypothesis.alignment.length)) return;
  section.hidden = false;
  section.classList.toggle("full", source.length > 22);
  const backwards = rightToLeft(source);
  let cursor = null, frames = null, size = 0, left = 0, top = 0;

  const place = (column) => left + (backwards ? source.length - 1 - column : column) * size;

  function point(row, column) {
    const { tokens, alignment } = selection.current;
    cursor = { row, column };
    frames.cell.setAttribute("x", place(column));
    frames.cell.setAttribute("y", top + row * size);
    frames.cell.removeAttribute("visibility");
    readout.textContent = attends(tokens[row], "to", source[column], alignment[row][column]);
    if (row !== selection.token) selection.chooseToken(row);
  }

  function markRow() {
    if (!frames) return;
    frames.row.setAttribute("y", top + selection.token * size - 0.5);
    if (cursor?.row === selection.token) return;
    cursor = null;
    frames.cell.setAttribute("visibility", "hidden");
    const { tokens, alignment } = selection.current, row = alignment[selection.token];
    const most = row.indexOf(Math.max(...row));
    readout.textContent = attends(tokens[selection.token], "most to", source[most], row[most]);
  }

  function paint() {
    const { tokens, alignment } = selection.current;
    host.replaceChildren();
    readout.textContent = "";
    cursor = frames = null;
    if (!alignment.length) return;
    const across = source.map((token) => brief(token)), down = tokens.map((token) => brief(token));
    const widest = Math.max(...across.map(textWidth));
    left = Math.ceil(Math.max(...down.map(textWidth))) + 12;
    const lean = widest * 0.64;      // labels that do not fit above their cell lean by 50 degrees
    const fitting = (room) => Math.max(16, Math.min(34, Math.floor(room / source.length)));
    size = fitting(host.clientWidth - left - 4);
    const leaning = widest > size - 2;
    if (leaning) size = fitting(host.clientWidth - left - lean - 8);
    top = leaning ? leaningHeight(across) : 24;
    const gap = size > 18 ? 2 : 1, cell = size - gap;
    const width = left + source.length * size + (leaning ? lean + 6 : 2), height = top + tokens.length * size + 2;
    const drawing = draw("svg", { width, height, role: "img", "aria-label": "Alignment of output and input" });
    across.forEach((text, column) => {
      const x = place(column) + size / 2;
      drawing.append(draw("text", leaning
        ? { x: 0, y: 0, transform: `translate(${x - 1} ${top - 7}) rotate(-50)` }
        : { x, y: top - 8, "text-anchor": "middle" }, text));
    });
    const largest = Math.max(...alignment.flat()) || 1;
    down.forEach((text, row) => {
      const y = top + row * size;
      drawing.append(draw("text", { x: left - 8, y: y + size / 2 + 4.5, "text-anchor": "end" }, text));
      source.forEach((_, column) => {
        const rx = gap === 2 ? 4 : 2;
        const square = draw("rect", { class: "cell", x: place(column), y, width: cell, height: cell, rx });
        square.style.setProperty("--weight", alignment[row][column] / largest);
        square.onpointerenter = () => point(row, column);
        drawing.append(square);
      });
    });
    const around = { x: left - 2.5, width: source.length * size + 5 - gap, height: size + 3 - gap };
    frames = {
      row: draw("rect", { class: "frame row", ...around, rx: 5, transform: "translate(0 -1)" }),
      cell: draw("rect", { class: "frame", width: cell, height: cell, rx: 4, visibility: "hidden" }),
    };
    drawing.append(frames.row, frames.cell);
    host.append(drawing);
    markRow();
  }

  host.onkeydown = (event) => {
    const forward = backwards ? -1 : 1;
    const move = { ArrowRight: [0, forward], ArrowLeft: [0, -forward], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!move || !frames) return;
    event.preventDefault();
    const within = (value, count) => Math.max(0, Math.min(count - 1, value));
    if (!cursor) return point(selection.token, 0);
    const { row, column } = cursor;
    point(within(row + move[0], selection.current.tokens.length), within(column + move[1], source.length));
  };
  selection.onHypothesis.push(paint);
  selection.onToken.push(markRow);
  onResize(host, paint);
}
