// Keeps the page up to date every two seconds, and changes the load without leaving it. Needs nothing but the browser.
"use strict";

(() => {
  const EVERY_MS = 2000;
  const PATIENCE_MS = 10000;
  const MOST_POINTS = 600; // as many as the server keeps
  const root = document.body.dataset.root;
  const freshness = document.getElementById("freshness");
  const said = document.getElementById("said");
  const field = document.getElementById("wanted");
  const series = { generation: null, seq: 0, points: [] };
  let touched = false;
  let turn = 0; // grows whenever a change is asked for or answered

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
    const before = turn;
    const text = await (await ask("/live")).text();
    const fresh = new DOMParser().parseFromString(text, "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
      if (other !== null && other.innerHTML !== part.innerHTML) part.replaceChildren(...other.childNodes);
    }
    for (const part of document.querySelectorAll("[data-shown]")) {
      const other = fresh.querySelector(`[data-shown="${part.dataset.shown}"]`);
      if (other !== null) part.hidden = other.hidden;
    }
    if (turn === before) showControls(fresh); // else they are older than the change
  };

  // Values of buttons and field as the server has them now. The elements stay, so that the focus does.
  const showControls = (fresh) => {
    for (const button of document.querySelectorAll("[data-button]")) {
      const other = fresh.querySelector(`[data-button="${button.dataset.button}"]`);
      if (other === null) continue;
      button.value = other.value;
      button.textContent = other.textContent;
      button.title = other.title;
    }
    const other = fresh.getElementById("wanted");
    if (other !== null && !touched && document.activeElement !== field) field.value = other.value;
  };

  const follow = async () => {
    const answer = await (await ask(`/api/v1/series?since=${series.seq}`)).json();
    if (series.generation !== answer.generation) {
      series.generation = answer.generation;
      series.points = [];
    }
    series.points = [...series.points, ...answer.points].slice(-MOST_POINTS);
    series.seq = answer.seq;
    scaletestCharts.draw(series.points);
  };

  const update = async () => {
    try {
      await Promise.all([refresh(), follow()]);
      freshness.textContent = `· updated ${new Date().toLocaleTimeString("en-GB")}`;
    } catch {
      freshness.textContent = "· the client does not answer; trying again";
    }
  };

  // One after the other: two on their way at once may arrive in either order. Each click of a step counts from what
  // the one before has set, hence the page is read in between.
  let changing = Promise.resolve();
  const change = (path, done) => {
    turn += 1;
    changing = changing.then(() => send(path, done));
  };

  const send = async (path, done) => {
    try {
      const response = await ask(path(), { method: "POST" });
      const answer = await response.json();
      if (response.ok) say(done(answer));
      else say(`Not changed: ${answer.info}.`, true);
    } catch {
      say("Not changed: the client does not answer.", true);
    }
    touched = false;
    turn += 1;
    await update();
  };

  for (const form of document.querySelectorAll("[data-set]")) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const button = event.submitter;
      const source = button !== null && button.name === "value" ? button : field;
      const clicked = source.value;
      const value = () => ("step" in source.dataset ? source.value : clicked);
      const target = new URL(form.action).pathname;
      change(() => `${target.slice(target.lastIndexOf("/"))}?type=json&value=${encodeURIComponent(value())}`, (answer) => {
        field.value = answer.result;
        return `${answer.result} ${answer.info}.`;
      });
    });
  }
  for (const form of document.querySelectorAll("[data-reset]")) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      change(() => "/reset?type=json", () => "The statistics began anew.");
      form.closest("details").open = false;
      form.closest("details").querySelector("summary").focus();
    });
  }
  if (field !== null) field.addEventListener("input", () => { touched = true; });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    scaletestCharts.forget();
    scaletestCharts.draw(series.points);
  });

  const live = async () => {
    if (!document.hidden) await update();
    setTimeout(live, EVERY_MS);
  };
  live();
})();
