// Charts with uPlot.
"use strict";

const scaletestCharts = (() => {
  const lines = {
    rate: {
      succeeded: { key: "--data", value: (p) => p.succeeded },
      failed: { key: "--fail", value: (p) => p.failed },
    },
    in_flight: { highest: { key: "--data", value: (p) => p.in_flight } },
  };
  const asked = { key: "--mark", value: (p) => p.asked, dash: [3, 3] };
  for (const measure of ["wait", "run", "overhead", "total"]) {
    lines[measure] = {
      median: { key: "--data", value: (p) => p[measure].p50_s },
      "95th percentile": { key: "--law", value: (p) => p[measure].p95_s },
      longest: { key: "--ideal", value: (p) => p[measure].high_s, dash: [7, 5] },
    };
  }

  const color = (key) => getComputedStyle(document.documentElement).getPropertyValue(key).trim();
  const three = (value) => Number(value.toPrecision(3)).toLocaleString("en");
  const seconds = (value) => {
    if (value === 0) return "0";
    if (value >= 1) return `${three(value)} s`;
    return value >= 1e-3 ? `${three(value * 1e3)} ms` : `${three(value * 1e6)} µs`;
  };
  const unit = (kind) => (kind === "rate" || kind === "in_flight" ? three : seconds);

  // A time on the axis: 2:05, or 1:20 h.
  const elapsed = (duration) => {
    const whole = Math.round(duration);
    const two = (number) => String(number).padStart(2, "0");
    if (whole < 3600) return `${Math.floor(whole / 60)}:${two(whole % 60)}`;
    return `${Math.floor(whole / 3600)}:${two(Math.floor((whole % 3600) / 60))} h`;
  };

  const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000];
  const DAY = 86400;
  // What the marks of a time axis may be apart, in seconds.
  const CLOCK_STEPS = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200,
    DAY, 2 * DAY, 5 * DAY, 10 * DAY, 30 * DAY,
  ];

  const made = new Map();
  let points = [];
  let chosen = null; // the number of a point that somebody looks at; null for the last one
  const origin = () => (points.length > 0 ? points[0].at_s : 0);
  const ending = () => (points.length > 0 ? points.at(-1).at_s + 1 : 1);

  const clockMarks = (_plot, _axis, low, high, step) => {
    const marks = [];
    for (let at = Math.ceil((low - origin()) / step) * step + origin(); at <= high; at += step) marks.push(at);
    return marks;
  };

  // The lines of a chart, as the legend names them: those that the server explains.
  const linesOf = (figure) => {
    const kind = figure.dataset.chart;
    const all = { ...lines[kind], "asked for": asked };
    const explained = [...figure.querySelectorAll(".key")].map((key) => key.firstChild.textContent.trim());
    return Object.keys(all).filter((name) => explained.includes(name)).map((name) => ({ name, ...all[name] }));
  };

  // Values of the chosen point beside the names of all lines, in all charts at once.
  const tell = () => {
    const at = chosen === null ? points.length - 1 : Math.min(chosen, points.length - 1);
    const point = points[at];
    if (point === undefined) return;
    const where = `at ${elapsed(point.at_s - origin())} (${new Date(point.at_s * 1000).toISOString().slice(11, 19)}Z)`;
    for (const [figure, plot] of made) {
      const show = unit(figure.dataset.chart);
      const known = new Map(plot.scaletest.map((line) => [line.name, line.value(point)]));
      const told = [];
      for (const key of figure.querySelectorAll(".key")) {
        const name = key.firstChild.textContent.trim();
        const value = known.get(name) ?? null;
        const text = value === null ? "n/a" : show(value);
        key.querySelector("[data-value]").textContent = text;
        told.push(`${name} ${text}`);
      }
      figure.querySelector("[data-at]").textContent = where;
      plot.root.parentElement.setAttribute("aria-valuemax", String(points.length - 1));
      plot.root.parentElement.setAttribute("aria-valuenow", String(at));
      plot.root.parentElement.setAttribute("aria-valuetext", `${where}: ${told.join(", ")}`);
    }
  };

  const choose = (at) => {
    chosen = at;
    for (const plot of made.values()) {
      const left = at === null ? -10 : plot.valToPos(plot.data[0][at], "x");
      plot.setCursor({ left, top: at === null ? -10 : 0 }, false);
    }
    tell();
  };

  const options = (figure, shown, width, height) => {
    const kind = figure.dataset.chart;
    const show = unit(kind);
    const axis = { stroke: color("--soft"), grid: { stroke: color("--edge"), width: 1 }, ticks: { show: false }, font: "13px system-ui, sans-serif" };
    return {
      width, height,
      padding: [8, 26, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false }, sync: { key: "scaletest", scales: ["x", null] } },
      scales: { x: { time: false, range: () => [origin(), ending()] }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.08 : 1] } },
      axes: [
        { ...axis, size: 28, space: 70, incrs: CLOCK_STEPS, splits: clockMarks, values: (_, ticks) => ticks.map((tick) => elapsed(tick - origin())) },
        { ...axis, size: 70, ...(kind === "in_flight" ? { incrs: WHOLE } : {}), values: (_, ticks) => ticks.map(show) },
      ],
      series: [{}, ...shown.map((line) => ({
        label: line.name, spanGaps: false, dash: line.dash, points: { show: false },
        stroke: color(line.key), width: 1.75,
      }))],
    };
  };

  const STRIDES = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };
  const onKey = (event) => {
    const last = points.length - 1;
    const jumps = { Home: 0, End: last, Escape: null };
    if (event.key in jumps) choose(jumps[event.key]);
    else if (event.key in STRIDES) choose(Math.min(last, Math.max(0, (chosen ?? last) + STRIDES[event.key])));
    else return;
    event.preventDefault();
  };

  const size = (box) => [Math.max(200, box.clientWidth), 200];

  const make = (figure, data, shown) => {
    const box = figure.querySelector("[data-drawn]");
    box.replaceChildren();
    const attributes = { role: "slider", tabindex: "0", "aria-labelledby": figure.querySelector("h3").id, "aria-valuemin": "0", "aria-valuenow": "0" };
    for (const [name, value] of Object.entries(attributes)) box.setAttribute(name, value);
    const plot = new uPlot(options(figure, shown, ...size(box)), data, box);
    plot.scaletest = shown;
    const look = (at) => {
      chosen = at;
      tell();
    };
    plot.over.addEventListener("mousemove", () => look(plot.cursor.idx ?? null));
    plot.over.addEventListener("mouseleave", () => look(null));
    if (!box.dataset.keys) box.addEventListener("keydown", onKey);
    box.dataset.keys = "yes";
    return plot;
  };

  const draw = (allPoints) => {
    if (allPoints.length === 0) return;
    const stayed = chosen !== null && points.length > chosen ? points[chosen].seq : null;
    points = allPoints;
    const again = points.findIndex((point) => point.seq === stayed);
    const xs = points.map((point) => point.at_s + 0.5);
    for (const figure of document.querySelectorAll("[data-chart]")) {
      const shown = linesOf(figure);
      const data = [xs, ...shown.map((line) => points.map(line.value))];
      if (made.has(figure)) made.get(figure).setData(data);
      else made.set(figure, make(figure, data, shown));
    }
    for (const hint of document.querySelectorAll(".with-script")) hint.hidden = false;
    choose(again < 0 ? null : again);
  };

  const forget = () => {
    for (const plot of made.values()) plot.destroy();
    made.clear();
  };

  if (typeof ResizeObserver === "function") {
    const observer = new ResizeObserver(() => {
      for (const [figure, plot] of made) {
        const [width, height] = size(figure.querySelector("[data-drawn]"));
        if (plot.width !== width) plot.setSize({ width, height });
      }
    });
    addEventListener("DOMContentLoaded", () => document.querySelectorAll("[data-chart]").forEach((f) => observer.observe(f)));
  }
  return { draw, forget };
})();
