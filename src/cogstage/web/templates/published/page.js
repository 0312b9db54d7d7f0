"use strict";
// The decision of cogstage/model for one pair, from the arrays in this file. Nothing is requested from anywhere.

const $ = (id) => document.getElementById(id);
const model = JSON.parse($("header").textContent);
const R = model.relations.length / 2;
const inverse = (k) => (k + R) % (2 * R);

const sigmoid = (x) => (x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x)));
const phi = (x) => (x > 0 ? x : x / 4);
const clip = (x, most) => Math.max(-most, Math.min(most, x));
const join = (s, d) => Math.min(s, d) - Math.log1p(Math.exp(-Math.abs(s - d)));
const fold = (text) => text.normalize("NFKC").toLowerCase().trim().replace(/\s+/g, " ");

// Arrays

async function inflated() {
  const text = $("data").textContent;
  const packed = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  $("data").remove();
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function unpack(bytes) {
  const part = (name) => bytes.subarray(model.sections[name].from, model.sections[name].from + model.sections[name].length);
  const numbers = (name) => {
    const { step } = model.sections[name];
    const content = part(name), n = content.length / 2, values = new Float64Array(n);
    for (let i = 0; i < n; i++) values[i] = ((content[i] << 24) >> 16 | content[n + i]) * step;
    return values;
  };
  const whole = (name) => new Uint32Array(part(name).slice().buffer);
  const variable = (name) => {
    const values = [];
    for (let at = 0, content = part(name); at < content.length; ) {
      let value = 0, shift = 1, byte;
      do { byte = content[at++]; value += (byte & 127) * shift; shift *= 128; } while (byte & 128);
      values.push(value);
    }
    return values;
  };
  for (const name of ["head", "tail", "context", "mean", "related", "contrast"]) model[name] = numbers(name);
  for (const name of ["start", "terms", "candidates"]) model[name] = whole(name);
  model.kind = part("kind");
  model.other = Uint32Array.from(variable("other"));
  model.count = Float64Array.from(variable("count"));
  Object.assign(model, JSON.parse(new TextDecoder().decode(part("text"))));
  const V = model.keys.length, total = new Float64Array(V);
  for (let i = 0; i < V; i++) {
    for (let e = model.start[i]; e < model.start[i + 1]; e++) {
      if (e > model.start[i]) model.other[e] += model.other[e - 1];
      total[i] += model.count[e];
      total[model.other[e]] += model.count[e];
    }
  }
  model.logTotal = total.map(Math.log);
  model.logAll = Math.log(Math.max(total.reduce((a, b) => a + b, 0), 1));
  model.known = new Set();
  for (let i = 0, facts = whole("facts"); i < facts.length; i += 3) {
    model.known.add(code(facts[i], facts[i + 1], facts[i + 2])).add(code(facts[i + 2], facts[i + 1] + R, facts[i]));
  }
  model.recalled = { head: new Map(), tail: new Map() };
  model.centre = {};
  model.directions = {};
  for (const end of ["head", "tail"]) {
    model.centre[end] = centre(end);
    model.directions[end] = new Map(Array.from(model.candidates, (c) => [c, direction(end, c)]));
  }
  model.index = new Map();
  const add = (name, node) => { if (!model.index.has(fold(name))) model.index.set(fold(name), node); };
  model.keys.forEach(add);
  [...model.keys.keys()].sort((a, b) => model.terms[b] - model.terms[a]).forEach((node) => add(model.names[node], node));
  model.synonyms.sort((a, b) => model.terms[b[1]] - model.terms[a[1]]).forEach(([name, node]) => add(name, node));
}

const code = (h, k, t) => (h * 2 * R + k) * model.keys.length + t;
const row = (array, node, width) => array.subarray(node * width, (node + 1) * width);
const dot = (x, y) => { let sum = 0; for (let i = 0; i < x.length; i++) sum += x[i] * y[i]; return sum; };

// Counts

function together(i, j) {
  const [a, b] = i < j ? [i, j] : [j, i];
  let low = model.start[a], high = model.start[a + 1];
  const end = high;
  while (low < high) { const middle = (low + high) >> 1; if (model.other[middle] < b) low = middle + 1; else high = middle; }
  return low < end && model.other[low] === b ? model.count[low] : 0;
}

function ppmi(i, j) {
  const n = together(i, j);
  if (!n) return 0;
  if (model.ppmiScale > 0) return n / model.ppmiScale;
  return Math.max(0, Math.log(n) + model.logAll - model.logTotal[i] - model.logTotal[j]);
}

// Stage 1: associations

function centre(end) {
  const sum = new Float64Array(model.width);
  for (const c of model.candidates) row(model[end], c, model.width).forEach((value, i) => { sum[i] += value; });
  return sum.map((value) => value / Math.max(1, model.candidates.length));
}

function direction(end, node) {
  const moved = Float64Array.from(row(model[end], node, model.width), (value, i) => value - model.centre[end][i]);
  const length = Math.sqrt(dot(moved, moved));
  return length > 0 ? moved.map((value) => value / length) : moved;
}

function associations(end, node) {
  const memory = model.recalled[end];
  if (!memory.has(node)) {
    const own = direction(end, node), given = model.nearest[end][node];
    const scored = Array.from(given ?? model.candidates, (c) => [c, dot(own, model.directions[end].get(c))]).filter(([c]) => c !== node);
    memory.set(node, scored.sort((a, b) => b[1] - a[1]).slice(0, model.associations));
  }
  return memory.get(node);
}

// Stage 2: recognition

function projected(matrix, k, vector, transposed) {
  const w = model.width, result = new Float64Array(w);
  for (let i = 0; i < w; i++) {
    const own = matrix.subarray((k * w + i) * w, (k * w + i + 1) * w);
    if (transposed) result[i] = dot(own, vector);
    else if (vector[i]) for (let j = 0; j < w; j++) result[j] += vector[i] * own[j];
  }
  return result.map((value) => value * model.scale);
}

// r_k of all 2R relations from ``node`` to others, as a decision sees it, with the known facts: r(node, other)
function recogniser(node, changes) {
  const fixed = { head: row(model.head, node, model.width), tail: row(model.tail, node, model.width) };
  const sides = [];
  for (let k = 0; k < R; k++) {
    sides.push(["related", "contrast"].map((name) => [projected(model[name], k, fixed.head, false), projected(model[name], k, fixed.tail, true)]));
  }
  return (other) => {
    const head = row(model.head, other, model.width), tail = row(model.tail, other, model.width), m = ppmi(node, other);
    const score = [], known = [];
    for (let k = 0; k < 2 * R; k++) {
      const r = k % R, [related, contrast] = sides[r].map(([ofHead, ofTail]) => (k < R ? dot(ofHead, tail) : dot(ofTail, head)));
      let value = clip(join(related + model.ppmi[r] * m + model.bias[0][r], contrast + model.bias[1][r] + model.margin), model.cut);
      if (model.usual && !model.usual[model.kind[node]][model.kind[other]][k]) value = 0;
      const triple = code(node, k, other), change = changes.get(triple);
      let fact = model.known.has(triple) || change === true;
      if (fact) value = model.cut;
      if (change === false || node === other) { value = 0; fact = false; }
      score.push(value);
      known.push(fact);
    }
    return { score, known };
  };
}

function lifted(i, j, k, score) {
  const less = score - model.mean[i * 2 * R + k] - model.mean[j * 2 * R + inverse(k)];
  return score > 0 ? Math.max(0, less) : score < 0 ? Math.min(0, less) : 0;
}

// Stage 3: decision

function look(h, t, changes) {
  const ofHead = recogniser(h, changes), ofTail = recogniser(t, changes), seen = [[], []];
  for (const [j, similarity] of associations("tail", t)) {
    const { score, known } = ofHead(j);
    seen[0].push({ h, t: j, like: t, similarity, score, known });
  }
  for (const [i, similarity] of associations("head", h)) {
    const { score, known } = ofTail(i); // (i, k, t) is (t, k⁻¹, i)
    seen[1].push({ h: i, t, like: h, similarity, score: score.map((_, k) => score[inverse(k)]), known: known.map((_, k) => known[inverse(k)]) });
  }
  const cosine = Math.max(0, dot(row(model.context, h, model.dimension), row(model.context, t, model.dimension)));
  return { seen, pair: [ppmi(h, t), cosine], count: together(h, t) };
}

function decide(view, q) {
  const own = model.decisions[q], [slope, shift] = model.calibration[q], all = [];
  view.seen.forEach((associated, kind) => {
    const sharp = Math.exp(own.sharpness[kind]), most = Math.max(...associated.map((a) => a.similarity));
    const powers = associated.map((a) => Math.exp(sharp * (a.similarity - most)));
    const sum = powers.reduce((a, b) => a + b, 0);
    associated.forEach((a, n) => a.score.forEach((score, k) => {
      const value = phi(lifted(a.h, a.t, k, score)) * (a.known[k] ? own.fact[k] : own.value[k]);
      all.push({ h: a.h, k, t: a.t, like: a.like, rank: n + 1, similarity: a.similarity, kind, known: a.known[k], score,
        share: slope * Math.exp(own.scale[kind]) * (powers[n] / sum) * value });
    }));
  });
  all.sort((a, b) => b.share - a.share);
  const reasons = [...all.slice(0, model.reasons).filter((r) => r.share > 0), ...all.slice(-model.reasons).filter((r) => r.share < 0).reverse()];
  const baseline = slope * (own.bias - shift), pair = view.pair.map((value, i) => slope * value * own.pair[i]);
  const logit = [...pair, ...reasons.map((r) => r.share)].reduce((a, b) => a + b, baseline);
  return { baseline, pair, reasons, logit };
}

// The verdict: cogstage/rationale/verdict.py and wording.py

function ask(h, t, changes, rate) {
  const view = look(h, t, changes), odds = Math.log(rate / (1 - rate));
  const entries = model.targets.map((k, q) => {
    const decision = decide(view, q), triple = code(h, k, t), change = changes.get(triple);
    return { q, k, decision, logit: decision.logit + odds, known: (model.known.has(triple) || change === true) && change !== false, wrong: change === false,
      fits: !model.usual || !!model.usual[model.kind[h]][model.kind[t]][k], against: null };
  });
  const strength = (e) => (e.known ? Infinity : e.wrong || !e.fits ? -Infinity : e.logit);
  const accepted = [];
  for (const entry of [...entries].sort((a, b) => (strength(b) > strength(a)) - (strength(b) < strength(a)) || a.q - b.q)) {
    const against = accepted.find((other) => model.opposite[entry.k][other.k]);
    entry.verdict = !entry.fits && !entry.known ? "does not apply" : "unlikely";
    if (strength(entry) < 0) continue;
    if (!entry.known && against) { entry.verdict = "contradicted"; entry.against = against.k; continue; }
    entry.verdict = entry.known ? "known fact" : "likely";
    accepted.push(entry);
  }
  const order = ["known fact", "likely", "contradicted", "unlikely", "does not apply"];
  entries.sort((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict) || b.logit - a.logit);
  return { h, t, rate, entries, view };
}

const chance = (p) => (p < 0.01 ? "<0.01" : p > 0.99 ? ">0.99" : p.toFixed(2));
const words = (k) => model.relations[k].phrase;
const negated = (k) => `is not thought to ${model.relations[k].infinitive}`;
const holds = (e) => e.verdict === "known fact" || e.verdict === "likely";
const held = (e) => (e.verdict === "known fact" ? `is known to ${model.relations[e.k].infinitive} it` : `is thought to ${model.relations[e.k].infinitive} it (likely, ${chance(sigmoid(e.logit))})`);

function statement(answer, entry) {
  const head = model.names[answer.h], tail = model.names[answer.t], alone = chance(sigmoid(entry.logit));
  const opposites = answer.entries.filter((e) => e.fits && model.opposite[e.k][entry.k]);
  const listed = (known) => opposites.filter((e) => (e.verdict === "known fact") === known).map((e) => `${model.relations[e.k].infinitive} it`);
  const clause = (listed(true).length ? `; it is also known to ${listed(true).join(" and to ")}` : "") + (listed(false).length ? `; it is not thought to ${listed(false).join(" or to ")}` : "");
  const denied = `${head} ${negated(entry.k)} ${tail}`;
  if (entry.verdict === "does not apply") {
    const types = [answer.h, answer.t].map((node) => model.kinds[model.kind[node]]).join(" and ");
    return `${head} ${words(entry.k)} ${tail}: does not apply, since “${words(entry.k)}” does not join terms of the types ${types}.`;
  }
  if (entry.verdict === "known fact") return `${head} is known to ${model.relations[entry.k].infinitive} ${tail} (known fact; the model alone: ${alone})${clause}.`;
  if (entry.verdict === "likely") return `${head} ${words(entry.k)} ${tail} (likely, ${alone})${clause}.`;
  if (entry.verdict === "contradicted") return `${denied}: contradicted (${alone} on its own), since it ${held(answer.entries.find((e) => e.k === entry.against))}.`;
  const other = answer.entries.find((e) => holds(e) && e.k !== entry.k);
  return `${denied} (${entry.wrong ? `marked wrong by a reader; ${alone} on its own` : `unlikely, ${alone}`})${other ? `; it ${held(other)}` : ""}.`;
}

const verdictWords = (e) => (e.against !== null ? `contradicted by ${words(e.against)}` : e.wrong && e.verdict === "unlikely" ? "marked wrong by a reader" : e.verdict);
const believed = (r) => r.known || r.score >= 0;
const tripleWords = (r) => `${model.names[r.h]} ${believed(r) ? words(r.k) : negated(r.k)} ${model.names[r.t]}`;

// Terms

function find(text) {
  const wanted = fold(text);
  for (const form of [wanted, wanted.replace(/['’]s\b/g, ""), `${wanted}s`, wanted.replace(/s$/, ""), wanted.replace(/y$/, "ies"), wanted.replace(/ies$/, "y"), wanted.replace(/ (hydrochloride|hcl|sodium|sulfate|sulphate|maleate)$/, "")]) {
    if (model.index.has(form)) return model.index.get(form);
  }
  return null;
}

function suggestions(text, most = 12) {
  const wanted = fold(text), best = new Map();
  if (!wanted) return [];
  for (const [name, node] of model.index) {
    const at = name.indexOf(wanted);
    if (at < 0 || (at > 0 && /[a-z0-9]/.test(name[at - 1]))) continue;
    const score = (name === wanted ? 40 : at ? 0 : 20) + Math.log1p(model.terms[node]);
    if (score > (best.get(node) ?? [-1])[0]) best.set(node, [score, name]);
  }
  return [...best].sort((a, b) => b[1][0] - a[1][0]).slice(0, most).map(([node, [, name]]) => ({ node, name }));
}

// The page

const element = (tag, text = "", properties = {}) => Object.assign(document.createElement(tag), { textContent: text }, properties);
const state = { h: null, t: null, k: "", changes: new Map(), typed: [] };
const SLIDER = [0.0001, 0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95];
const rate = () => SLIDER[Number($("rate").value)];
const oneIn = (p) => (p < 0.5 ? `1 in ${Math.round(1 / p).toLocaleString("en")}` : `${Math.round(100 * p)} in 100`);

function setChange(triple, right) {
  const [h, k, t] = triple;
  for (const one of [code(h, k, t), code(t, inverse(k), h)]) { if (right === null) state.changes.delete(one); else state.changes.set(one, right); }
  state.listed = (state.listed ?? []).filter(([, ...other]) => code(...other) !== code(h, k, t));
  if (right !== null) state.listed.push([right, h, k, t]);
  draw(true);
}

function draw(stay = false) {
  const answer = ask(state.h, state.t, state.changes, rate());
  const entry = answer.entries.find((e) => String(e.k) === state.k) ?? answer.entries[0];
  const p = sigmoid(entry.logit);
  state.k = String(entry.k); // changes and base rates are about the relation that was answered
  $("message").textContent = "";
  $("answer").hidden = false;
  $("statement").textContent = statement(answer, entry);
  $("read-as").textContent = state.typed.filter(([text, node]) => fold(text) !== fold(model.names[node])).map(([text, node]) => `“${text}” was read as ${model.names[node]}.`).join(" ");
  $("rate-words").textContent = `${oneIn(rate())} are true`;
  $("what-if").hidden = !state.changes.size;
  if (state.changes.size) {
    const before = ask(state.h, state.t, new Map(), rate()).entries.find((e) => e.k === entry.k);
    $("change").textContent = `Before: ${before.verdict}, ${chance(sigmoid(before.logit))} → now: ${entry.verdict}, ${chance(p)} (log-odds ${before.logit.toFixed(3)} → ${entry.logit.toFixed(3)}).`;
    $("changes").replaceChildren(...state.listed.map(([right, h, k, t]) => {
      const item = element("li", `“${model.names[h]} ${words(k)} ${model.names[t]}” were ${right ? "right" : "wrong"} `);
      item.append(element("button", "undo", { type: "button", onclick: () => setChange([h, k, t], null) }));
      return item;
    }));
  }
  $("profile").tBodies[0].replaceChildren(...answer.entries.map((e) => {
    const line = element("tr"), applies = e.verdict !== "does not apply", cell = element("td");
    cell.append(element("button", words(e.k), { type: "button", onclick: () => { state.k = String(e.k); draw(); } }));
    line.append(cell, element("td", applies ? chance(sigmoid(e.logit)) : ""), element("td", applies ? e.logit.toFixed(3) : ""), element("td", verdictWords(e)));
    if (e === entry) line.setAttribute("aria-current", "true");
    return line;
  }));
  $("reasons").hidden = entry.verdict === "does not apply";
  const { baseline, pair, reasons } = entry.decision, lines = [];
  let sum = 0;
  const line = (label, share, acts = [], detail = "") => {
    sum += share;
    const tr = element("tr"), first = element("td", label), last = element("td", "", { className: "acts" });
    if (detail) first.append(element("div", detail, { className: "faint" }));
    last.append(...acts);
    tr.append(first, element("td", (share < 0 ? "" : "+") + share.toFixed(3), { className: "number" }), element("td", chance(sigmoid(sum)), { className: "number" }), last);
    lines.push(tr);
  };
  line("Baseline: before any evidence", baseline + Math.log(rate() / (1 - rate())));
  line(answer.view.count ? `The two terms occur together ${answer.view.count.toLocaleString("en")}× (PPMI ${answer.view.pair[0].toFixed(2)})` : "The two terms do not occur together", pair[0]);
  line(`Similarity of their contexts: ${answer.view.pair[1].toFixed(2)}`, pair[1]);
  for (const r of reasons) {
    const act = (label, right) => element("button", label, { type: "button", onclick: () => setChange([r.h, r.k, r.t], right), ariaLabel: `${label}: ${tripleWords(r)}` });
    const acts = [act("Remove", false), ...(r.known ? [] : [act(believed(r) ? "Confirm" : "It does hold", true)])];
    const status = r.known ? "known fact" : `${believed(r) ? "assumed" : "considered unlikely"}, ${chance(sigmoid(r.score))}`;
    const other = r.kind ? r.h : r.t;
    line(tripleWords(r), r.share, acts, `${status}; ${model.names[other]} is similar to ${model.names[r.like]} (${r.similarity.toFixed(2)}, rank ${r.rank})`);
  }
  const total = element("tr");
  total.append(element("th", "Sum (log-odds) and probability", { scope: "row" }), element("td", (entry.logit < 0 ? "" : "+") + entry.logit.toFixed(3), { className: "number" }), element("td", chance(p), { className: "number" }), element("td"));
  $("sum").tBodies[0].replaceChildren(...lines);
  $("sum").tFoot.replaceChildren(total);
  if (!stay) $("statement").focus();
}

function submit(event) {
  event.preventDefault();
  const nodes = ["head", "tail"].map((end) => find($(end).value));
  const unknown = ["head", "tail"].find((_, i) => nodes[i] === null);
  if (unknown || nodes[0] === nodes[1]) {
    const near = unknown ? suggestions($(unknown).value, 5).map(({ node }) => model.names[node]) : [];
    $("message").textContent = unknown ? `Unknown term: ${$(unknown).value}.${near.length ? ` Did you mean ${near.join(", ")}?` : ""}` : "Head and tail are the same term.";
    $("answer").hidden = true;
    return;
  }
  Object.assign(state, { h: nodes[0], t: nodes[1], k: $("relation").value, changes: new Map(), listed: [], typed: [[$("head").value, nodes[0]], [$("tail").value, nodes[1]]] });
  draw();
}

async function start() {
  unpack(await inflated());
  for (const k of model.targets) $("relation").append(element("option", words(k), { value: String(k) }));
  $("rate").max = SLIDER.length - 1;
  $("rate").value = SLIDER.indexOf(0.5);
  $("rate").addEventListener("input", () => draw(true));
  $("undo-all").addEventListener("click", () => { state.changes = new Map(); state.listed = []; draw(true); });
  $("ask").addEventListener("submit", submit);
  for (const end of ["head", "tail"]) {
    $(end).addEventListener("input", () => $(`${end}-names`).replaceChildren(...suggestions($(end).value).map(({ node, name }) => element("option", name === fold(model.names[node]) ? "" : `“${name}”`, { value: model.names[node] }))));
  }
  $("about").textContent = [model.about, ...model.licences].join(" · ");
  $("message").textContent = "";
  document.body.dataset.ready = "true";
}

start().catch((error) => { $("message").textContent = `This browser cannot read the model (${error.message}). Chrome 103, Firefox 113 and Safari 16.4 can.`; });
