/* A case's page: every click is saved at once, in order, and tried again until the server has it.
   Without this script the form still works: its buttons save everything. */
"use strict";

(function () {
  const form = document.querySelector("form[data-save]");
  if (!form) return;
  const status = document.getElementById("save-status");
  const pending = new Map();
  let sending = false;
  let leaving = false;
  let looked = 0;
  let since = document.visibilityState === "visible" ? performance.now() : null;

  function seconds() {
    return (looked + (since === null ? 0 : performance.now() - since)) / 1000;
  }

  function say(words, state) {
    if (status.textContent !== words) status.textContent = words;
    status.dataset.state = state;
  }

  function post(answers) {
    return fetch(form.dataset.save, {
      method: "POST",
      credentials: "same-origin",
      keepalive: true,
      headers: { "Content-Type": "application/json", "X-Form-Token": form.dataset.token },
      body: JSON.stringify({ answers: answers, visit: form.dataset.visit, seconds: seconds() }),
    });
  }

  function wait(milliseconds) {
    return new Promise(function (resolve) { setTimeout(resolve, milliseconds); });
  }

  function showProgress(answer) {
    const bar = document.getElementById("progress");
    if (bar) bar.value = answer.done;
    const words = document.getElementById("progress-words");
    if (words) words.textContent = answer.done;
    const here = document.querySelector('.case-list a[aria-current="page"]');
    if (here) here.classList.toggle("done", answer.complete);
  }

  async function send() {
    if (sending) return;
    sending = true;
    let delay = 500;
    while (pending.size) {
      const batch = Object.fromEntries(pending);
      try {
        const response = await post(batch);
        if (response.status === 401 || response.status === 403) {
          say("Not saved: please open your personal link again", "problem");
          break;
        }
        if (response.status >= 400 && response.status < 500 && response.status !== 429) {
          say("Not saved: please reload the page", "problem");
          break;
        }
        if (!response.ok) throw new Error("server");
        for (const name of Object.keys(batch)) {
          if (pending.get(name) === batch[name]) pending.delete(name);
        }
        delay = 500;
        showProgress(await response.json());
        if (!pending.size) say("All answers saved", "saved");
      } catch (problem) {
        say("Not saved yet – trying again …", "problem");
        await wait(delay);
        delay = Math.min(2 * delay, 8000);
      }
    }
    sending = false;
  }

  function answer(name, value) {
    pending.set(name, value);
    say("Saving …", "saving");
    send();
  }

  form.addEventListener("change", function (event) {
    if (event.target.type === "radio") answer(event.target.name, event.target.value);
  });

  const comment = form.elements.comment;
  let typing = null;
  comment.addEventListener("input", function () {
    say("Saving …", "saving");
    clearTimeout(typing);
    typing = setTimeout(function () { answer("comment", comment.value); }, 600);
  });
  comment.addEventListener("blur", function () {
    if (typing !== null) {
      clearTimeout(typing);
      typing = null;
      answer("comment", comment.value);
    }
  });

  form.addEventListener("submit", function () {
    leaving = true;
    form.elements.seconds.value = seconds().toFixed(1);
  });

  document.addEventListener("visibilitychange", function () {
    if (document.visibilityState === "visible") {
      since = performance.now();
    } else {
      if (since !== null) looked += performance.now() - since;
      since = null;
      if (!leaving) post(Object.fromEntries(pending)).catch(function () {});
    }
  });

  window.addEventListener("beforeunload", function (event) {
    if (pending.size && !leaving) event.preventDefault();
  });

  say("Answers are saved as you click", "idle");
})();
