/* Every view of an explanation; those that have nothing to show stay hidden. */
import { alignmentView } from "./alignment.js";
import { attentionView } from "./attention.js";
import { beamView } from "./beam.js";
import { copyingView } from "./copying.js";
import { dark } from "./dom.js";
import { expertsView } from "./experts.js";
import { header, hypothesisSwitch } from "./header.js";
import { imageView } from "./image.js";
import { nBestView } from "./n_best.js";
import { parseView } from "./parse.js";
import { pixelsView } from "./pixels.js";
import { pointsView } from "./points.js";
import { Selection } from "./selection.js";
import { stepsView } from "./steps.js";
import { storyView } from "./story.js";
import { timingView } from "./timing.js";
import { tokenView } from "./tokens.js";

const views = [      // tokenView fits its width to alignmentView, so comes after it
  header, hypothesisSwitch, timingView, stepsView, expertsView, copyingView, storyView, parseView, pointsView, imageView,
  pixelsView,  alignmentView, tokenView, attentionView, nBestView, beamView,
];

/* Fill the elements of page.html, which must be new. */
export function show(explanation) {
  const selection = new Selection(explanation.hypotheses);
  for (const view of views) view(explanation, selection);
  selection.chooseHypothesis(0);
  dark.addEventListener("change", () => selection.chooseHypothesis(selection.hypothesis));      // colours of canvases
}
