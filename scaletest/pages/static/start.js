// Adds the token of the printed address to the forms that start and stop runs. The browser keeps it for this address and
// port alone; a cookie would go to every port of the machine. It comes after a #, which is sent to no server.
"use strict";

(() => {
  const KEY = "scaletest-start";
  const keepToken = () => {
    const given = new URLSearchParams(location.hash.slice(1)).get("token");
    if (given === null) return;
    localStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname + location.search);
  };
  keepToken();
  // the printed address of a new server, pasted over this page: nothing is loaded anew
  addEventListener("hashchange", keepToken);
  document.addEventListener("submit", (event) => {
    const field = event.target.elements.namedItem("token");
    if (field !== null) field.value = localStorage.getItem(KEY) ?? "";
  });
})();
