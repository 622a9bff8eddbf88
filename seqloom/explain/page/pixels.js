/* A picture or film as the output: its pixels, what each cost, what one depends on, and how likely its values were. */
import { draw, find, heatMap, make } from "./dom.js";
import { percent, probability } from "./text.js";

const FRAMES = 6;      // beside each other
const COLOURS = ["red", "green", "blue"];

export function pixelsView({ pixels }) {
  if (!pixels) return;
  const section = find("#pixels"), host = section.querySelector(".maps"), bars = section.querySelector(".chances");
  const readout = section.querySelector("output");
  section.hidden = false;
  host.classList.toggle("film", pixels.frames > 1);
  const { height, width, channels, frames, film, levels, values, log_probs: logProbs, chances, together, first, fields } = pixels;
  const columns = Math.min(frames, FRAMES), rows = Math.ceil(frames / columns), area = height * width;
  const wide = columns * (width + 1) - 1, high = rows * (height + 1) - 1;
  const measured = Object.keys(fields).map(Number);
  const nats = logProbs.map((value) => value === null ? Infinity : -value);
  const most = Math.max(...nats.filter(Number.isFinite)) || 1;
  let chosen = Math.floor(first / channels);      // a pixel, not one of its values

  const corner = (pixel) => {
    const frame = Math.floor(pixel / area), within = pixel % area;
    return [frame % columns * (width + 1) + within % width, Math.floor(frame / columns) * (height + 1) + Math.floor(within / width)];
  };
  const own = (list, pixel) => list.slice(pixel * channels, (pixel + 1) * channels);
  const grey = (pixel) => own(values, pixel).map((value) => Math.round(255 * value / Math.max(levels - 1, 1)));

  /* One number from 0 to 1 for each pixel, as a matrix of the sheet of all frames. */
  function sheet(weight) {
    const matrix = Array.from({ length: high }, () => Array(wide).fill(0));
    for (let pixel = 0; pixel < area * frames; pixel++) {
      const [x, y] = corner(pixel);
      matrix[y][x] = weight(pixel);
    }
    return matrix;
  }

  function pictureOf() {
    const canvas = make("canvas", { width: wide, height: high }), pen = canvas.getContext("2d");
    for (let pixel = 0; pixel < area * frames; pixel++) {
      const [x, y] = corner(pixel), shades = grey(pixel), [red, green, blue] = channels === 3 ? shades : [shades[0], shades[0], shades[0]];
      pen.fillStyle = `rgb(${red} ${green} ${blue})`;
      pen.fillRect(x, y, 1, 1);
    }
    return canvas;
  }

  function panel(title, ...layers) {
    const figure = make("figure"), stack = make("div", { class: "stack" });
    const frame = draw("svg", { viewBox: `0 0 ${wide} ${high}` }), mark = draw("rect", { class: "here", width: 1, height: 1 });
    frame.append(mark);
    stack.style.aspectRatio = `${wide} / ${high}`;
    stack.append(...layers, frame);
    figure.append(stack, make("figcaption", {}, title));
    host.append(figure);
    stack.onpointerdown = stack.onpointermove = (event) => {
      if (event.type === "pointermove" && event.pointerType !== "mouse") return;
      const box = stack.getBoundingClientRect();
      const x = Math.floor((event.clientX - box.left) / box.width * wide), y = Math.floor((event.clientY - box.top) / box.height * high);
      const frameAt = Math.floor(y / (height + 1)) * columns + Math.floor(x / (width + 1));
      const [column, row] = [x % (width + 1), y % (height + 1)];
      if (column < width && row < height && frameAt >= 0 && frameAt < frames) choose(frameAt * area + row * width + column);
    };
    return { stack, mark };
  }

  const ground = () => heatMap(sheet(() => 1), "--surface");
  const cost = (pixel) => Math.min(own(nats, pixel).reduce((sum, each) => sum + each, 0) / channels / most, 1);
  const panels = [
    panel("the output", pictureOf()),
    panel("cost: the stronger, the less likely", ground(), heatMap(sheet(cost), "--accent")),
    panel("what the pixel depends on"),
  ];
  const [whole, , last] = panels;
  whole.stack.tabIndex = 0;
  whole.stack.setAttribute("role", "application");
  whole.stack.setAttribute("aria-label", "Pixels of the output; move with the arrow keys");
  whole.stack.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: width, ArrowUp: -width, PageDown: area, PageUp: -area }[event.key];
    if (!step) return;
    event.preventDefault();
    if (chosen + step >= 0 && chosen + step < area * frames) choose(chosen + step);
  };

  const place = (pixel) => {
    const within = pixel % area;
    return `${film ? `frame ${Math.floor(pixel / area) + 1}, ` : ""}row ${Math.floor(within / width) + 1}, column ${within % width + 1}`;
  };

  function choose(pixel) {
    chosen = pixel;
    const [x, y] = corner(pixel);
    for (const { mark } of panels) {
      mark.setAttribute("x", x);
      mark.setAttribute("y", y);
    }
    const away = (token) => Math.abs(token - pixel * channels - (channels - 1) / 2);      // its middle channel
    const token = measured.reduce((best, each) => away(each) < away(best) ? each : best, measured[0] ?? 0);
    const field = fields[token] ?? [], at = Math.floor(token / channels);
    const strength = (other) => Math.max(0, ...own(field, other)) / 255;
    const later = heatMap(sheet((other) => other > at && (other + Math.floor(other / width)) % 2 ? 0.35 : 0), "--quiet");
    last.stack.replaceChildren(ground(), later, heatMap(sheet(strength), "--accent"), last.stack.lastChild);
    const [ownX, ownY] = corner(at);
    last.mark.setAttribute("x", ownX);
    last.mark.setAttribute("y", ownY);
    const seen = field.filter((each) => each > 0).length;
    const name = (value, channel) => {
      const index = pixel * channels + channel, text = levels === 2 ? ["black", "white"][value] : `level ${value} of ${levels}`;
      return `${channels === 3 ? `${COLOURS[channel]} ` : ""}${text}, ${percent(probability(logProbs[index]))}`;
    };
    const known = field.length ? `depends on ${seen} of the ${token} values before it` : "has nothing before it";
    const which = at === pixel ? `${channels === 3 ? `Its ${COLOURS[token % 3]}` : "It"}` : `The nearest pixel that was measured (${place(at)})`;
    readout.textContent = `Pixel ${pixel + 1} of ${area * frames}, ${place(pixel)}: ${own(values, pixel).map(name).join("; ")}. ${which} ${known}.`;
    bars.replaceChildren(...own(chances, pixel).map((shares, channel) => histogram(shares, own(values, pixel)[channel], channel)));
  }

  /* The chances of all levels of one value, from the darkest to the brightest. */
  function histogram(shares, value, channel) {
    const each = 100 / shares.length, at = Math.floor(value / together);
    const drawing = draw("svg", { viewBox: "0 0 100 40", preserveAspectRatio: "none", role: "img",
      "aria-label": `Probabilities of ${channels === 3 ? `${COLOURS[channel]}, ` : ""}dark to bright` });
    shares.forEach((share, index) => {
      const bar = draw("rect", { x: index * each + each * 0.08, width: each * 0.84, y: 40 - 40 * share, height: 40 * share,
        class: index === at ? "bar chosen" : "bar" });
      bar.append(draw("title", {}, percent(share)));
      drawing.append(bar);
    });
    const figure = make("figure");
    figure.append(drawing, make("figcaption", {}, channels === 3 ? COLOURS[channel] : "probabilities, from black to white"));
    return figure;
  }

  choose(chosen);
}
