/* A reviewer's pages. Every answer is written into the browser's own storage first and leaves it only when the server
   has acknowledged it, so that neither a server that is away nor a closed browser loses one. Each page of the study
   sends what is left over. Without this script the forms still work: their buttons save everything. */
"use strict";

(function () {
  const status = document.getElementById("save-status");
  if (!status) return;
  const form = document.getElementById("case");
  const here = form ? form.dataset.position : undefined;
  const storageKey = "cogstage:" + status.dataset.reviewer + ":";
  const memory = new Map(); // where the browser lends no storage
  let durable = true;

  // What the server does not have yet, by case: {field: answer}. Read anew each time, as other tabs write, too.

  function positions() {
    const positions = new Set(memory.keys());
    try {
      for (let n = 0; n < localStorage.length; n++) {
        const key = localStorage.key(n);
        if (key.startsWith(storageKey)) positions.add(key.slice(storageKey.length));
      }
    } catch (problem) { durable = false; }
    return [...positions];
  }

  function pending(position) {
    let kept = null;
    try { kept = JSON.parse(localStorage.getItem(storageKey + position)); } catch (problem) { durable = false; }
    return Object.assign({}, kept && typeof kept === "object" ? kept : {}, memory.get(position));
  }

  function keep(position, answers) {
    const empty = !Object.keys(answers).length;
    try {
      if (empty) localStorage.removeItem(storageKey + position);
      else localStorage.setItem(storageKey + position, JSON.stringify(answers));
      memory.delete(position);
    } catch (problem) {
      durable = false;
      if (empty) memory.delete(position);
      else memory.set(position, answers);
    }
  }

  function settle(position, sent) {
    const left = pending(position);
    for (const name of Object.keys(sent)) if (left[name] === sent[name]) delete left[name];
    keep(position, left);
  }

  // Sending

  let looked = 0;
  let since = document.visibilityState === "visible" ? performance.now() : null;
  let running = null;
  let wake = null;
  let leaving = false;

  function seconds() {
    return (looked + (since === null ? 0 : performance.now() - since)) / 1000;
  }

  function say(words, state) {
    if (status.textContent !== words) status.textContent = words;
    status.dataset.state = state;
  }

  async function post(position, answers) {
    const body = { answers: answers };
    if (position === here) Object.assign(body, { visit: form.dataset.visit, seconds: seconds() });
    const patience = new AbortController();
    const limit = setTimeout(function () { patience.abort(); }, 20000);
    try {
      return await fetch("/case/" + position + "/save", {
        method: "POST",
        credentials: "same-origin",
        keepalive: true,
        signal: patience.signal,
        headers: { "Content-Type": "application/json", "X-Form-Token": status.dataset.token },
        body: JSON.stringify(body),
      });
    } finally { clearTimeout(limit); }
  }

  function pause(milliseconds) {
    return new Promise(function (resolve) {
      const timer = setTimeout(resolve, milliseconds);
      wake = function () { clearTimeout(timer); resolve(); };
    });
  }

  function showProgress(answer) {
    const bar = document.getElementById("progress");
    if (bar) bar.value = answer.done;
    const words = document.getElementById("progress-words");
    if (words) words.textContent = answer.done;
    const link = document.querySelector('.case-list a[aria-current="page"]');
    if (link) link.classList.toggle("done", answer.complete);
  }

  // Sends one case's answers; true when the server has them, false when it refused, throws when it is not there.
  async function deliver(position) {
    const batch = pending(position);
    const response = await post(position, batch);
    if (response.ok) {
      settle(position, batch);
      const answer = await response.json();
      if (position === here) showProgress(answer);
      return true;
    }
    if (response.status >= 500 || response.status === 429) throw new Error("server");
    if (response.status === 401 || response.status === 403) {
      say("Not saved: open your personal link again. Your answers are kept in this browser", "problem");
    } else if (response.status === 409) {
      say("Not saved: the study is closed. Your answers are kept in this browser", "problem");
    } else {
      if (position !== here) settle(position, batch); // no question of this study: the server will never take it
      say("Not saved: please reload the page", "problem");
    }
    return false;
  }

  // Sends everything, again and again while the server is away; true when nothing is left.
  async function sendAll() {
    let delay = 500;
    for (;;) {
      const open = positions();
      if (!open.length) return true;
      try {
        for (const position of open) if (!(await deliver(position))) return false;
        delay = 500;
      } catch (problem) {
        say(durable
          ? "Not saved yet: kept in this browser, trying again …"
          : "Not saved yet: please keep this page open, trying again …", "problem");
        await pause(delay);
        delay = Math.min(2 * delay, 8000);
      }
    }
  }

  function send() {
    if (running) {
      if (wake) wake();
      return running;
    }
    running = sendAll().then(function (done) {
      running = null;
      if (done) say("All answers saved", "saved");
      return done;
    });
    return running;
  }

  function answer(name, value) {
    keep(here, Object.assign(pending(here), { [name]: value }));
    say("Saving …", "saving");
  }

  window.addEventListener("online", function () { if (positions().length) send(); });

  window.addEventListener("beforeunload", function (event) {
    if (positions().length && !leaving) event.preventDefault();
  });

  if (form) {
    keyboard(form);
    if (here) watch(form);
  }
  if (positions().length) {
    say("Saving …", "saving");
    send();
  } else if (here) {
    say("Answers are saved as you click", "idle");
  }

  // A case's page

  function watch(form) {
    for (const [name, value] of Object.entries(pending(here))) { // what was answered before but not saved
      if (name === "comment") form.elements.comment.value = value;
      for (const box of form.querySelectorAll('input[type="radio"]')) {
        if (box.name === name && box.value === value) box.checked = true;
      }
    }

    form.addEventListener("change", function (event) {
      if (event.target.type !== "radio") return;
      answer(event.target.name, event.target.value);
      const marked = event.target.closest(".missing");
      if (marked) marked.classList.remove("missing");
      send();
    });

    const comment = form.elements.comment;
    let typing = null;
    comment.addEventListener("input", function () {
      answer("comment", comment.value);
      clearTimeout(typing);
      typing = setTimeout(send, 600);
    });
    comment.addEventListener("blur", function () { if (positions().length) send(); });

    form.addEventListener("submit", async function (event) {
      event.preventDefault();
      const go = document.createElement("input");
      go.type = "hidden";
      go.name = "go";
      go.value = event.submitter ? event.submitter.value : "next";
      for (const button of document.querySelectorAll("button[name=go]")) button.disabled = true;
      if (!positions().length) keep(here, { comment: comment.value }); // ask the server at least whether it is there
      if (await send()) {
        leaving = true;
        form.elements.seconds.value = seconds().toFixed(1);
        form.append(go);
        form.submit();
      } else {
        for (const button of document.querySelectorAll("button[name=go]")) button.disabled = false;
      }
    });

    window.addEventListener("pageshow", function (event) { // back from the next page: the buttons work again
      if (!event.persisted) return;
      leaving = false;
      for (const box of form.querySelectorAll("input[name=go]")) box.remove();
      for (const button of document.querySelectorAll("button[name=go]")) button.disabled = false;
    });

    document.addEventListener("visibilitychange", function () {
      if (document.visibilityState === "visible") {
        since = performance.now();
      } else {
        if (since !== null) looked += performance.now() - since;
        since = null;
        if (!leaving) post(here, pending(here)).catch(function () {});
      }
    });
  }

  // The key that stands on a button presses it; up and down go from question to question.

  function keyboard(form) {
    const groups = [...form.querySelectorAll(".choices")];

    function enter(group) {
      const box = group.querySelector("input:checked") || group.querySelector("input");
      box.focus();
      group.scrollIntoView({ block: "nearest" });
    }

    document.addEventListener("keydown", function (event) {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const at = document.activeElement;
      if (at && (at.tagName === "TEXTAREA" || (at.tagName === "INPUT" && at.type !== "radio"))) return;
      let index = groups.findIndex(function (group) { return group.contains(at); });
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        if (index < 0) return;
        const next = groups[index + (event.key === "ArrowDown" ? 1 : -1)];
        event.preventDefault();
        if (next) enter(next);
        return;
      }
      if (index < 0) index = groups.findIndex(function (group) { return !group.querySelector("input:checked"); });
      if (index < 0) return;
      const key = event.key.toLowerCase();
      const box = [...groups[index].querySelectorAll("input")].find(function (one) {
        return one.dataset.key.toLowerCase() === key;
      });
      if (!box) return;
      event.preventDefault();
      box.focus();
      box.click();
      if (groups[index + 1]) enter(groups[index + 1]);
    });
  }
})();
