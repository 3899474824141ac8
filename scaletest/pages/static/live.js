// Renews the parts of a page that have changed, every two seconds, without flicker. Needs nothing but the browser.
"use strict";

(() => {
  const EVERY_MS = 2000;
  const PATIENCE_MS = 10000;
  const shown = new WeakMap();
  const freshness = document.getElementById("freshness");

  const refresh = async () => {
    const response = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
    // of what is gone there is a page, too
    if (!response.ok && response.status !== 404) throw new Error(`status ${response.status}`);
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
      if (other === null) continue;
      const text = other.innerHTML;
      if ((shown.get(part) ?? part.innerHTML) !== text) replace(part, other);
      shown.set(part, text);
    }
  };

  // What the reader has unfolded stays so.
  const replace = (part, other) => {
    const folds = [...part.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent);
    part.replaceChildren(...other.childNodes);
    for (const summary of part.querySelectorAll("details > summary")) {
      if (folds.includes(summary.textContent)) summary.parentElement.open = true;
    }
  };

  const update = async () => {
    try {
      await refresh();
      freshness.textContent = `Updated ${new Date().toLocaleTimeString("en-GB")}`;
    } catch {
      freshness.textContent = "The server does not answer; trying again";
    }
  };

  const live = async () => {
    if (!document.hidden && document.querySelector("[data-live]") !== null) await update();
    setTimeout(live, EVERY_MS);
  };
  setTimeout(live, EVERY_MS);
})();
