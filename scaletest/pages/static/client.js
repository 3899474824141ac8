// Keeps the page up to date every two seconds, and changes the load without leaving it. Needs nothing but the browser.
"use strict";

(() => {
  const EVERY_MS = 2000;
  const PATIENCE_MS = 10000;
  const MOST_POINTS = 1200;
  const root = document.body.dataset.root;
  const maximum = Number(document.body.dataset.maximum);
  const freshness = document.getElementById("freshness");
  const said = document.getElementById("said");
  const field = document.getElementById("parallel");
  const series = { generation: null, seq: 0, points: [] };
  let touched = false;
  let asked = 0;

  const ask = async (path, options = {}) => {
    const response = await fetch(root + path, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS), ...options });
    if (!response.ok && response.status >= 500) throw new Error(`status ${response.status}`);
    return response;
  };

  const say = (text, bad = false) => {
    said.textContent = text;
    said.classList.toggle("bad", bad);
  };

  const refresh = async () => {
    const text = await (await ask("/live")).text();
    const fresh = new DOMParser().parseFromString(text, "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
      if (other !== null && other.innerHTML !== part.innerHTML) part.replaceChildren(...other.childNodes);
    }
  };

  const follow = async () => {
    let answer = await (await ask(`/api/v1/series?since=${series.seq}`)).json();
    if (series.generation !== answer.generation || series.points.length > MOST_POINTS) {
      if (series.generation !== null && series.seq > 0) answer = await (await ask("/api/v1/series")).json();
      series.generation = answer.generation;
      series.points = [];
    }
    series.points.push(...answer.points);
    series.seq = answer.seq;
    scaletestCharts.draw(series.points);
  };

  const setParallel = (value) => {
    for (const button of document.querySelectorAll("[data-step]")) {
      const step = button.dataset.step;
      const next = step === "0" ? 0 : step === "/2" ? Math.floor(value / 2) : step === "*2" ? value * 2 : value + Number(step);
      button.value = Math.min(maximum, Math.max(0, next));
    }
    if (field !== null && !touched && document.activeElement !== field) field.value = value;
  };

  const readParallel = async () => {
    if (field === null || asked > 0) return;
    const { result } = await (await ask("/parallel?type=json")).json();
    if (asked === 0) setParallel(result);
  };

  const update = async () => {
    try {
      await Promise.all([refresh(), scaletestCharts.available ? follow() : null, readParallel()]);
      freshness.textContent = `· updated ${new Date().toLocaleTimeString("en-GB")}`;
    } catch {
      freshness.textContent = "· the client does not answer; trying again";
    }
  };

  // one after the other: two on their way at once may arrive in either order
  let changing = Promise.resolve();
  const change = (path, done) => {
    asked += 1;
    changing = changing.then(() => send(path, done));
  };

  const send = async (path, done) => {
    try {
      const response = await ask(path, { method: "POST" });
      const answer = await response.json();
      if (response.ok) say(done(answer));
      else say(`Not changed: ${answer.info}.`, true);
    } catch {
      say("Not changed: the client does not answer.", true);
    }
    touched = false;
    asked -= 1;
    if (asked === 0) await update();
  };

  for (const form of document.querySelectorAll("[data-set]")) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const value = event.submitter !== null && event.submitter.name === "value" ? event.submitter.value : field.value;
      setParallel(Number(value)); // the next click counts from here, without waiting for the answer
      change(`/parallel?type=json&value=${encodeURIComponent(value)}`, (answer) => {
        field.value = answer.result;
        return `${answer.result} requests in parallel.`;
      });
    });
  }
  for (const form of document.querySelectorAll("[data-reset]")) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      change("/reset?type=json", () => "The statistics began anew.");
      form.closest("details").open = false;
      form.closest("details").querySelector("summary").focus();
    });
  }
  if (field !== null) field.addEventListener("input", () => { touched = true; });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    scaletestCharts.forget();
    if (series.points.length > 0) scaletestCharts.draw(series.points);
  });

  const live = async () => {
    if (!document.hidden) await update();
    setTimeout(live, EVERY_MS);
  };
  live();
})();
