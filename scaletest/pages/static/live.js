// Renews what has changed in the parts of a page, every two seconds, without flicker. Needs nothing but the browser.
// Elements stay where they are, and only their texts, attributes and children change: so the keyboard's focus, folds and
// scrolled tables stay as their reader left them. Rows that change places have the attribute data-key.
"use strict";

(() => {
  const EVERY_MS = 2000;
  const PATIENCE_MS = 10000;
  const GONE = 404;
  const shown = new WeakMap();
  const freshness = document.getElementById("freshness");

  const refresh = async () => {
    const response = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    // a page that tells of trouble has the same parts, one of what is gone may have others
    if (!response.ok && response.status !== GONE && fresh.querySelector("[data-live]") === null) throw new Error(`status ${response.status}`);
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = fresh.querySelector(`[data-live="${CSS.escape(part.dataset.live)}"]`);
      if (other !== null && !isSelected(part)) renew(part, other);
    }
    return response.status === GONE ? "The server knows nothing of this any more" : `Updated ${new Date().toLocaleTimeString("en-GB")}`;
  };

  // A part in which text is selected waits until the reader is done with it.
  const isSelected = (part) => {
    const selection = getSelection();
    return selection !== null && !selection.isCollapsed && selection.containsNode(part, true);
  };

  const renew = (part, other) => {
    const text = other.innerHTML;
    if ((shown.get(part) ?? part.innerHTML) !== text) {
      const focused = document.activeElement;
      patchChildren(part, other);
      // an element that changed its place lost the focus
      if (part.contains(focused) && document.activeElement !== focused) focused.focus({ preventScroll: true });
    }
    shown.set(part, text);
  };

  const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("data-key") : null);
  const isAlike = (node, other) => node.nodeType === other.nodeType && node.nodeName === other.nodeName && node.id === other.id;

  const patch = (node, other) => {
    if (node.isEqualNode(other)) return;
    if (node.nodeType !== Node.ELEMENT_NODE) {
      node.data = other.data;
      return;
    }
    const isFold = node.nodeName === "DETAILS";
    for (const { name } of [...node.attributes]) {
      if (!other.hasAttribute(name) && !(isFold && name === "open")) node.removeAttribute(name);
    }
    for (const { name, value } of other.attributes) {
      if (node.getAttribute(name) !== value && !(isFold && name === "open")) node.setAttribute(name, value);
    }
    patchChildren(node, other);
  };

  const patchChildren = (node, other) => {
    const keyed = new Map([...node.children].filter((child) => keyOf(child) !== null).map((child) => [keyOf(child), child]));
    let at = node.firstChild;
    for (const wanted of [...other.childNodes]) {
      const key = keyOf(wanted);
      let match = key === null ? at : keyed.get(key);
      if (match && (keyOf(match) !== key || !isAlike(match, wanted))) match = undefined;
      if (!match) {
        node.insertBefore(document.adoptNode(wanted), at);
        continue;
      }
      keyed.delete(key);
      if (match === at) at = at.nextSibling;
      else node.insertBefore(match, at);
      patch(match, wanted);
    }
    while (at !== null) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  };

  const update = async () => {
    try {
      freshness.textContent = await refresh();
    } catch {
      freshness.textContent = freshness.dataset.away ?? "The server does not answer; trying again";
    }
  };

  const showsEnd = () => document.querySelector("[data-ended]") !== null;

  const live = async () => {
    const showedEnd = showsEnd();
    if (!document.hidden && document.querySelector("[data-live]") !== null) await update();
    // asking again at once says that the end is shown
    setTimeout(live, showsEnd() && !showedEnd ? 0 : EVERY_MS);
  };
  setTimeout(live, EVERY_MS);
})();
