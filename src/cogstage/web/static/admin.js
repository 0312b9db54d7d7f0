/* The administrator's page: copy a new link, ask before a link ends. */
"use strict";

(function () {
  const field = document.getElementById("new-link");
  const button = document.getElementById("copy-link");
  if (field && button) {
    button.hidden = false;
    button.addEventListener("click", function () {
      field.select();
      const copied = navigator.clipboard
        ? navigator.clipboard.writeText(field.value)
        : Promise.resolve(document.execCommand("copy"));
      copied.then(function () { button.textContent = "Copied"; });
    });
  }
  for (const form of document.querySelectorAll("form[data-ask]")) {
    form.addEventListener("submit", function (event) {
      if (!window.confirm(form.dataset.ask)) event.preventDefault();
    });
  }
})();
