// The values under the pointer, for every chart. Without it the page lacks nothing else.
"use strict";

for (const chart of document.querySelectorAll(".chart")) {
  const { box: [left, top, width, height], limits: [begin, end], label, series } =
    JSON.parse(chart.querySelector("script").textContent);
  const drawing = chart.querySelector(".drawing");
  const mark = add(drawing, "div", "mark");
  const values = add(drawing, "div", "values");
  hide();

  drawing.addEventListener("pointermove", show);
  drawing.addEventListener("pointerdown", show);
  drawing.addEventListener("pointerleave", hide);

  function show(event) {
    const bounds = drawing.getBoundingClientRect();
    const x = begin + ((event.clientX - bounds.left) / bounds.width - left) / width * (end - begin);
    const longest = series.reduce((a, b) => (b.x.length > a.x.length ? b : a));
    const at = longest.x[nearest(longest.x, x)];
    const share = left + (at - begin) / (end - begin) * width;
    values.replaceChildren();
    add(values, "b", "").textContent = `${at.toLocaleString("en")} ${label}`;
    for (const line of series) {
      const row = add(values, "div", "");
      add(row, "i", `c${line.color} d${line.dash}`);
      row.append(`${line.name} ${line.y[nearest(line.x, at)].toLocaleString("en", { maximumSignificantDigits: 4 })}`);
    }
    mark.hidden = values.hidden = false;
    mark.style.cssText = `left: ${100 * share}%; top: ${100 * top}%; height: ${100 * height}%`;
    const isRight = share > 0.5; // so that it stays inside the drawing
    values.style.cssText = `top: ${100 * top}%; ${isRight ? "right" : "left"}: ${100 * (isRight ? 1 - share : share)}%`;
  }

  function hide() {
    mark.hidden = values.hidden = true;
  }
}

function add(parent, kind, className) {
  const element = parent.appendChild(document.createElement(kind));
  element.className = className;
  return element;
}

// The position of the value nearest to x among those that rise.
function nearest(xs, x) {
  let low = 0;
  let high = xs.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle;
    else high = middle;
  }
  return x - xs[low] < xs[high] - x ? low : high;
}

// What is folded away is printed, too.
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
