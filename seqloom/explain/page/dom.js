/* Elements, shading, and groups of buttons: what every view is made of. */
import { label, rightToLeft } from "./text.js";

export const find = (selector) => document.querySelector(selector);

/* Text may come from anywhere: it enters the page through textContent only. */
export function make(tag, attributes = {}, text = null, space = null) {
  const element = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== null) element.textContent = text;
  return element;
}

export const draw = (tag, attributes, text) => make(tag, attributes, text, "http://www.w3.org/2000/svg");

export const dark = matchMedia("(prefers-color-scheme: dark)");

/* Above this share of the accent colour the text on it changes colour. */
export const isStrong = (weight) => weight > (dark.matches ? 0.55 : 0.68);

export function shade(element, weight) {
  element.classList.add("shaded");
  element.classList.toggle("strong", isStrong(weight));
  element.style.setProperty("--weight", weight);
  return element;
}

/* One shaded token per value, the value below it. */
export function shadeTokens(host, tokens, values, { number, title, weight }) {
  host.replaceChildren(...values.map((value, index) => {
    const token = make("span", { class: "token", title: title(value) }, label(tokens[index]));
    token.append(make("sub", {}, number(value)));
    return shade(token, weight(value));
  }));
  host.dir = rightToLeft(tokens) ? "rtl" : "ltr";
}

/* A matrix of weights from 0 to 1 as a picture of one pixel each, in a colour of the style sheet. */
export function heatMap(matrix, colourName, attributes = {}) {
  const canvas = make("canvas", { width: matrix[0].length, height: matrix.length, ...attributes });
  const pen = canvas.getContext("2d");
  pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(colourName).trim();
  const colour = [1, 3, 5].map((at) => parseInt(pen.fillStyle.slice(at, at + 2), 16));
  const image = pen.createImageData(canvas.width, canvas.height);
  matrix.flat().forEach((weight, at) => image.data.set([...colour, 255 * weight], 4 * at));
  pen.putImageData(image, 0, 0);
  return canvas;
}

const ruler = document.createElement("canvas").getContext("2d");

export function textWidth(text) {
  ruler.font = `13px ${getComputedStyle(document.body).fontFamily}`;
  return ruler.measureText(text).width;
}

/* The height that labels need when they lean by 50 degrees. */
export const leaningHeight = (labels) => Math.ceil(Math.max(...labels.map(textWidth)) * 0.77) + 22;

/* Paint again when the width of the host changes. */
export function onResize(host, paint) {
  let width = 0;
  new ResizeObserver(() => {
    if (host.clientWidth === width) return;
    width = host.clientWidth;
    setTimeout(paint);
  }).observe(host);
}

/* One choice out of several buttons: click, or the arrow keys. Returns the function that marks a choice. */
export function choices(host, name, buttons, choose, byHover = false) {
  host.setAttribute("role", "radiogroup");
  host.setAttribute("aria-label", name);
  const mark = (chosen) => buttons.forEach((button, index) => {
    button.setAttribute("aria-checked", index === chosen);
    button.tabIndex = index === chosen ? 0 : -1;
  });
  buttons.forEach((button, index) => {
    button.type = "button";
    button.setAttribute("role", "radio");
    button.onclick = () => choose(index);
    if (byHover) button.onpointerenter = (event) => { if (event.pointerType === "mouse") choose(index); };
    button.onkeydown = (event) => {
      const forward = getComputedStyle(host).direction === "rtl" ? -1 : 1;
      const move = {
        ArrowRight: forward, ArrowLeft: -forward, ArrowDown: 1, ArrowUp: -1,
        Home: -index, End: buttons.length - 1 - index,
      }[event.key];
      if (move === undefined) return;
      event.preventDefault();
      const next = (index + move + buttons.length) % buttons.length;
      buttons[next].focus();
      choose(next);
    };
  });
  return mark;
}
