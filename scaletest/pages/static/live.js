// Renews the parts of a page that have changed, every two seconds, without flicker. Needs nothing but the browser.
"use strict";

(() => {
  const EVERY_MS = 2000;
  const PATIENCE_MS = 10000;
  const freshness = document.getElementById("freshness");

  const refresh = async () => {
    const response = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
    if (!response.ok) throw new Error(`status ${response.status}`);
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
      if (other !== null && other.innerHTML !== part.innerHTML) part.replaceChildren(...other.childNodes);
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
