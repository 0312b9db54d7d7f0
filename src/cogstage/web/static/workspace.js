// Pairs that a reader saved, with notes: kept in this browser, exported and imported as a file, never sent anywhere.

const KEY = "cogstage-workspace";
const FIELDS = ["head", "relation", "tail", "statement", "probability", "model", "saved", "note"];
const MOST = 5000;

const stored = () => {
  try {
    return clean(JSON.parse(localStorage.getItem(KEY) ?? "[]"));
  } catch {
    return [];
  }
};
const keep = (entries) => localStorage.setItem(KEY, JSON.stringify(entries));
const same = (one, other) => one.head === other.head && one.relation === other.relation && one.tail === other.tail;

// What a file holds is not trusted: known fields alone, as text.
function clean(entries) {
  if (!Array.isArray(entries)) throw new Error("it holds no list of pairs");
  return entries
    .filter((entry) => entry && entry.head && entry.relation && entry.tail)
    .slice(0, MOST)
    .map((entry) => Object.fromEntries(FIELDS.map((field) => [field, String(entry[field] ?? "").slice(0, 2000)])));
}

function merged(entries, more) {
  return [...more, ...entries.filter((entry) => !more.some((other) => same(entry, other)))].slice(0, MOST);
}

const saver = document.getElementById("save-pair");
if (saver) {
  const status = document.getElementById("saved-pair");
  const own = { ...saver.dataset, note: "" };
  const before = stored().find((entry) => same(entry, own));
  saver.hidden = false;
  if (before) status.textContent = "This pair is in your workspace.";
  saver.addEventListener("click", () => {
    const known = stored().find((entry) => same(entry, own));
    keep(merged(stored(), clean([{ ...own, saved: new Date().toISOString(), note: known?.note ?? "" }])));
    status.textContent = "Saved to your workspace in this browser.";
  });
}

const section = document.getElementById("workspace");
if (section) {
  const status = document.getElementById("workspace-status");
  const cell = (text, label = "") => {
    const td = document.createElement("td");
    td.textContent = text;
    if (label) td.dataset.label = label;
    return td;
  };

  const draw = () => {
    const entries = stored();
    const rows = entries.map((entry) => {
      const row = document.createElement("tr");
      const link = document.createElement("a");
      link.href = `/pair?${new URLSearchParams({ head: entry.head, tail: entry.tail, relation: entry.relation })}`;
      link.textContent = entry.statement || `${entry.head} ${entry.relation} ${entry.tail}`;
      const pair = cell("");
      pair.append(link);
      const note = document.createElement("textarea");
      note.value = entry.note;
      note.rows = 2;
      note.setAttribute("aria-label", `Note on ${link.textContent}`);
      note.addEventListener("change", () => keep(stored().map((one) => (same(one, entry) ? { ...one, note: note.value } : one))));
      const notes = cell("", "Note");
      notes.append(note);
      const remove = document.createElement("button");
      remove.type = "button";
      remove.className = "quiet";
      remove.textContent = "Remove";
      remove.setAttribute("aria-label", `Remove ${link.textContent}`);
      remove.addEventListener("click", () => {
        keep(stored().filter((one) => !same(one, entry)));
        draw();
      });
      const acts = cell("");
      acts.append(remove);
      const probability = Number(entry.probability);
      row.append(pair, cell(entry.probability && Number.isFinite(probability) ? probability.toFixed(2) : "", "Probability"), cell(entry.model.slice(0, 8), "Model"), cell(entry.saved.slice(0, 10), "Saved"), notes, acts);
      return row;
    });
    document.querySelector("#workspace-table tbody").replaceChildren(...rows);
    document.getElementById("workspace-table").hidden = !entries.length;
    document.getElementById("workspace-empty").hidden = entries.length > 0;
  };

  document.getElementById("workspace-export").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(stored(), null, 1)], { type: "application/json" }));
    link.download = `workspace_${new Date().toISOString().slice(0, 10)}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  document.getElementById("workspace-import").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    try {
      const more = clean(JSON.parse(await file.text()));
      keep(merged(stored(), more));
      status.textContent = more.length === 1 ? "1 pair was imported." : `${more.length} pairs were imported.`;
    } catch (error) {
      status.textContent = `The file is not a workspace: ${error.message}`;
    }
    event.target.value = "";
    draw();
  });
  document.getElementById("workspace-clear").addEventListener("click", () => {
    if (confirm("Remove all pairs and notes from this browser?")) keep([]);
    draw();
  });
  section.hidden = false;
  draw();
}
