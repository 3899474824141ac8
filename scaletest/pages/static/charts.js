// Charts with uPlot, where it was built in. Without it the drawings that the server makes stay.
"use strict";

const scaletestCharts = (() => {
  const perSecond = (point, count) => point[count] / point.span_s;
  const kinds = {
    rate: [
      { name: "lowest second", key: "--band", value: (p) => p.rate_low, edge: true },
      { name: "highest second", key: "--band", value: (p) => p.rate_high, edge: true },
      { name: "succeeded", key: "--data", value: (p) => perSecond(p, "succeeded") },
      { name: "failed", key: "--fail", value: (p) => perSecond(p, "failed") },
    ],
    in_flight: [{ name: "highest", key: "--law", value: (p) => p.in_flight_high }],
  };
  for (const measure of ["wait", "run", "overhead", "total"]) {
    kinds[measure] = [
      { name: "median", key: "--data", value: (p) => p[measure].p50_s },
      { name: "95th percentile", key: "--law", value: (p) => p[measure].p95_s },
      { name: "longest", key: "--ideal", value: (p) => p[measure].high_s },
    ];
  }

  const color = (key) => getComputedStyle(document.documentElement).getPropertyValue(key).trim();
  const three = (value) => Number(value.toPrecision(3)).toLocaleString("en");
  const seconds = (value) => {
    if (value === 0) return "0";
    if (value >= 1) return `${three(value)} s`;
    return value >= 1e-3 ? `${three(value * 1e3)} ms` : `${three(value * 1e6)} us`;
  };

  const clock = (at) => new Date(at * 1000).toLocaleTimeString("en-GB");

  const clockSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800];

  const options = (kind, width, height) => {
    const show = kind === "rate" || kind === "in_flight" ? three : seconds;
    const axis = { stroke: color("--soft"), grid: { stroke: color("--edge"), width: 1 }, ticks: { show: false } };
    return {
      width, height,
      padding: [8, 26, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      scales: { y: { range: (_, low, high) => [0, high > 0 ? high * 1.08 : 1] } },
      axes: [{ ...axis, size: 28, space: 75, incrs: clockSteps, values: (_, ticks) => ticks.map(clock) }, { ...axis, size: 70, values: (_, ticks) => ticks.map(show) }],
      bands: kind === "rate" ? [{ series: [2, 1], fill: color("--band") }] : [],
      series: [{}, ...kinds[kind].map((line) => ({
        label: line.name, spanGaps: false, points: { show: false },
        stroke: line.edge ? "transparent" : color(line.key), width: line.edge ? 0 : 1.75,
      }))],
    };
  };

  const made = new Map();
  const size = (box) => [Math.max(200, box.clientWidth), 200];

  const draw = (points) => {
    const xs = points.map((point) => point.at_s + point.span_s / 2);
    for (const figure of document.querySelectorAll("[data-chart]")) {
      const kind = figure.dataset.chart;
      const box = figure.querySelector("[data-drawn]");
      const data = [xs, ...kinds[kind].map((line) => points.map(line.value))];
      let plot = made.get(kind);
      if (plot === undefined) {
        const label = `${figure.querySelector("h3").textContent} over time`;
        box.removeAttribute("data-live");
        box.replaceChildren();
        box.setAttribute("role", "img");
        box.setAttribute("aria-label", label);
        plot = new uPlot(options(kind, ...size(box)), data, box);
        made.set(kind, plot);
      } else {
        plot.setData(data);
      }
    }
  };

  const forget = () => {
    for (const plot of made.values()) plot.destroy();
    made.clear();
  };

  if (typeof ResizeObserver === "function") {
    const observer = new ResizeObserver(() => {
      for (const [kind, plot] of made) {
        const [width, height] = size(document.querySelector(`[data-chart="${kind}"] [data-drawn]`));
        if (plot.width !== width) plot.setSize({ width, height });
      }
    });
    addEventListener("DOMContentLoaded", () => document.querySelectorAll("[data-chart]").forEach((f) => observer.observe(f)));
  }
  return { available: typeof uPlot === "function", draw, forget };
})();
