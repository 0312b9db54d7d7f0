/* The administrator's pages: copy new links, ask before something ends, keep the figures fresh. */
"use strict";

(function () {
  const fields = [...document.querySelectorAll("input.link")];
  const button = document.getElementById("copy-links");
  if (fields.length && button && navigator.clipboard) {
    button.hidden = false;
    button.addEventListener("click", function () {
      const lines = fields.map(function (field) {
        return fields.length === 1 ? field.value : field.labels[0].textContent + "\t" + field.value;
      });
      navigator.clipboard.writeText(lines.join("\n")).then(function () { button.textContent = "Copied"; });
    });
  }

  for (const form of document.querySelectorAll("form[data-ask]")) {
    form.addEventListener("submit", function (event) {
      if (!window.confirm(form.dataset.ask)) event.preventDefault();
    });
  }

  const live = document.getElementById("live");
  if (live) {
    const note = document.getElementById("live-note");
    setInterval(async function () {
      if (document.visibilityState !== "visible") return;
      try {
        const response = await fetch(live.dataset.url, { credentials: "same-origin", redirect: "error" });
        if (!response.ok) throw new Error("server");
        live.innerHTML = await response.text();
        note.textContent = "";
      } catch (problem) {
        note.textContent = "(not up to date: the server does not answer)";
      }
    }, 5000);
  }
})();
