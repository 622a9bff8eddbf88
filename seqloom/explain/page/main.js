import { show } from "./show.js";

show(JSON.parse(document.getElementById("explanation").textContent));
