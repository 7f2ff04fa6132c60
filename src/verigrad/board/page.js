"use strict";
// Theme: what the reader chose before, else what the system says.
const root = document.documentElement;
let stored = null;
try { stored = localStorage.getItem("verigrad-theme"); } catch { /* a page from disk may have no storage */ }
root.dataset.theme = stored ||
  (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
document.addEventListener("click", (event) => {
  if (event.target.id !== "theme") return;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem("verigrad-theme", root.dataset.theme); } catch { /* same */ }
});

function format(value, unit) {
  if (unit === "share") return (100 * value).toFixed(1) + "%";
  if (unit === "seconds") return value.toFixed(2) + " s";
  if (unit === "tiny") return value.toExponential(1);
  return Math.abs(value) >= 1000 ? Math.round(value).toString() : Number(value.toPrecision(4)).toString();
}

function nearest(points, x) {
  let best = points[0];
  for (const p of points) if (Math.abs(p[0] - x) < Math.abs(best[0] - x)) best = p;
  return best;
}

// The pointer over a chart shows the step and the value of every line there.
function wire(figure) {
  const svg = figure.querySelector("svg"), plot = figure.querySelector(".plot");
  const data = JSON.parse(figure.querySelector("script").textContent);
  if (!svg || !data.series.length) return;
  const [left, right, top, bottom] = svg.dataset.box.split(",").map(Number);
  const [low, high] = svg.dataset.x.split(",").map(Number);
  const tip = plot.appendChild(document.createElement("div"));
  tip.className = "tip";
  const cross = document.createElementNS("http://www.w3.org/2000/svg", "line");
  cross.setAttribute("class", "cross");
  cross.setAttribute("y1", top);
  cross.setAttribute("y2", bottom);
  svg.appendChild(cross).style.display = "none";
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const at = low + ((event.clientX - box.left) * scale - left) / (right - left) * (high - low);
    const step = nearest(data.series[0].points, at)[0];
    const x = left + (step - low) / ((high - low) || 1) * (right - left);
    cross.setAttribute("x1", x);
    cross.setAttribute("x2", x);
    cross.style.display = "";
    tip.textContent = ["step " + Math.round(step), ...data.series.map(
      (s) => s.name + "  " + format(nearest(s.points, step)[1], data.unit))].join("\n");
    tip.style.display = "block";
    const place = x / scale + 12;
    tip.style.left = Math.min(place, box.width - tip.offsetWidth - 4) + "px";
  });
  svg.addEventListener("pointerleave", () => {
    cross.style.display = "none";
    tip.style.display = "none";
  });
}
document.querySelectorAll("figure").forEach(wire);

// Served live, the page fetches itself again while the run goes on, and keeps the reader's place.
async function verigradLive() {
  const ended = () => ["done", "failed", "interrupted"].includes(
    document.querySelector(".state").textContent);
  while (!ended()) {
    await new Promise((resolve) => setTimeout(resolve, 3000));
    if (document.hidden || document.querySelector("figure:hover")) continue;
    let answer = null;
    try { answer = await fetch(location.href); } catch { continue; /* the server may be restarting */ }
    if (!answer.ok) continue;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const open = [...document.querySelectorAll("details")].map((d) => d.open);
    document.querySelector("main").replaceWith(page.querySelector("main"));
    document.querySelectorAll("details").forEach((d, i) => { d.open = open[i] ?? d.open; });
    document.querySelectorAll("figure").forEach(wire);
  }
}
