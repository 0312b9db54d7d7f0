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
    if (input.dataset.page) location.assign(`${input.dataset.page}?${new URLSearchParams({ key: option.dataset.key })}`);
  };

  const mark = (next) => {
    const options = list.querySelectorAll("[data-name]");
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
        option.dataset.key = term.key;
        const name = document.createElement("span");
        name.textContent = term.name;
        const kind = document.createElement("span");
        kind.className = "kind";
        const count = term.count === null ? "" : term.count.toLocaleString("en");
        const also = term.matched ? `“${term.matched}”` : "";
        kind.textContent = [also, term.type, count].filter(Boolean).join(" · ");
        option.append(name, kind);
        option.addEventListener("pointerdown", (event) => {
          event.preventDefault();
          choose(option);
        });
        return option;
      }),
    );
    active = -1;
    if (!terms.length) {
      const none = document.createElement("li");
      none.setAttribute("role", "option");
      none.setAttribute("aria-disabled", "true");
      none.textContent = "No match. Try another spelling or a more general name.";
      list.append(none);
    }
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
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
      status.textContent = "Press Ctrl+C to copy the selected link.";
    }
  });
}

// The picture: hovering a line lights its row and the other way round, a term filters by it, a slider hides weak lines.
const picture = document.getElementById("picture");
if (picture) {
  const controls = document.querySelector("[data-for=picture]");
  const slider = document.getElementById("weakest");
  const all = document.getElementById("show-all");
  const said = document.getElementById("chosen-node");
  const rows = [...document.querySelectorAll("tr[data-reason]")];
  const shapes = [...picture.querySelectorAll("[data-reason]")];
  const strongest = Math.max(...rows.map((row) => Number(row.dataset.share)), 1e-9);
  let node = null;
  controls.hidden = false;
  document.querySelector(".hint").hidden = false;

  const of = (reason) => [...rows, ...shapes].filter((part) => part.dataset.reason === reason);

  const light = (reason) => {
    for (const part of [...rows, ...shapes]) part.classList.remove("lit");
    for (const part of reason ? of(reason) : []) part.classList.add("lit");
    picture.classList.toggle("busy", Boolean(reason));
  };

  const sift = () => {
    slider.nextElementSibling.textContent = `${slider.value} %`;
    for (const row of rows) {
      const weak = (100 * Number(row.dataset.share)) / strongest < Number(slider.value);
      const elsewhere = node !== null && !row.dataset.ends.split("\t").includes(node);
      for (const part of of(row.dataset.reason)) part.classList.toggle("weak", weak || elsewhere);
    }
    all.hidden = node === null;
  };

  for (const part of [...rows, ...shapes]) {
    part.addEventListener("pointerenter", () => light(part.dataset.reason));
    part.addEventListener("pointerleave", () => light(null));
    part.addEventListener("focusin", () => light(part.dataset.reason));
  }
  for (const shape of shapes) {
    shape.addEventListener("click", () => {
      light(shape.dataset.reason);
      const row = rows.find((one) => one.dataset.reason === shape.dataset.reason);
      row?.scrollIntoView({ block: "nearest", behavior: "smooth" });
    });
  }
  const pick = (chosen) => {
    node = chosen === null || chosen.dataset.node === node ? null : chosen.dataset.node;
    for (const other of picture.querySelectorAll(".node")) {
      other.classList.toggle("chosen", other.dataset.node === node);
      if (other.hasAttribute("tabindex")) other.setAttribute("aria-pressed", String(other.dataset.node === node));
    }
    said.textContent = node === null ? "" : `Only reasons with ${chosen.querySelector("title").textContent}`;
    sift();
  };
  for (const box of picture.querySelectorAll(".node")) {
    box.setAttribute("tabindex", "0");
    box.setAttribute("role", "button");
    box.setAttribute("aria-pressed", "false");
    box.addEventListener("click", () => pick(box));
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        pick(box);
      }
    });
  }
  for (const drawing of picture.querySelectorAll("svg")) drawing.setAttribute("role", "group");
  slider.addEventListener("input", sift);
  all.addEventListener("click", () => pick(null));
}

// Two or three candidates can be compared: the button says so before it is pressed.
const compare = document.querySelector(".compare-them button");
if (compare) {
  const boxes = [...document.querySelectorAll("input[name=with]")];
  const count = () => {
    const chosen = boxes.filter((box) => box.checked).length;
    compare.disabled = chosen < 2 || chosen > 3;
    compare.nextElementSibling.textContent = chosen ? `${chosen} selected; two or three can be compared.` : "Select two or three.";
  };
  for (const box of boxes) box.addEventListener("change", count);
  count();
}

// A list of pairs from a file: read in the browser and put into the text field, so that no upload is stored anywhere.
const file = document.getElementById("pairs-file");
if (file) {
  file.closest(".file").hidden = false;
  file.addEventListener("change", async () => {
    if (file.files.length) document.getElementById("pairs").value = await file.files[0].text();
  });
}
