// Type-ahead for the term fields (the ARIA combobox pattern) and the copy button. Without this script both forms work.
"use strict";

for (const input of document.querySelectorAll("input[role=combobox]")) {
  const list = document.getElementById(input.getAttribute("aria-controls"));
  let active = -1;
  let asked = 0;
  let timer = 0;

  const close = () => {
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };

  const choose = (option) => {
    input.value = option.dataset.name;
    close();
  };

  const mark = (next) => {
    const options = list.children;
    if (!options.length) return;
    if (active >= 0) options[active].setAttribute("aria-selected", "false");
    active = (next + options.length) % options.length;
    options[active].setAttribute("aria-selected", "true");
    options[active].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", options[active].id);
  };

  const show = (terms) => {
    list.replaceChildren(
      ...terms.map((term, number) => {
        const option = document.createElement("li");
        option.id = `${list.id}-${number}`;
        option.setAttribute("role", "option");
        option.setAttribute("aria-selected", "false");
        option.dataset.name = term.name;
        const name = document.createElement("span");
        name.textContent = term.name;
        const kind = document.createElement("span");
        kind.className = "kind";
        kind.textContent = [term.type, term.count.toLocaleString("en")].filter(Boolean).join(" · ");
        option.append(name, kind);
        option.addEventListener("pointerdown", (event) => {
          event.preventDefault();
          choose(option);
        });
        return option;
      }),
    );
    active = -1;
    list.hidden = terms.length === 0;
    input.setAttribute("aria-expanded", String(terms.length > 0));
  };

  const look = async () => {
    const text = input.value.trim();
    const mine = ++asked;
    if (!text) return close();
    try {
      const answer = await fetch(`${input.dataset.terms}?${new URLSearchParams({ q: text, limit: "8" })}`);
      if (answer.ok && mine === asked) show(await answer.json());
    } catch {
      close();
    }
  };

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, 120);
  });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) look();
      else mark(active + (event.key === "ArrowDown" ? 1 : active < 0 ? 0 : -1));
    } else if (event.key === "Enter" && active >= 0) {
      event.preventDefault();
      choose(list.children[active]);
    } else if (event.key === "Escape") {
      close();
    }
  });
}

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.addEventListener("click", async () => {
    const field = document.getElementById(button.dataset.copy);
    const status = document.getElementById("copied");
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      status.textContent = "The link was copied.";
    } catch {
      status.textContent = "Press Ctrl+C to copy the marked link.";
    }
  });
}
