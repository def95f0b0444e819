// The page stays up to date, and forms are sent without losing what stands in other forms.
// Everything works without this file too: forms are plain forms, pages are plain pages.
"use strict";

(() => {
  const EVERY = 2000; // milliseconds between two looks at the campaign
  const shown = new Map(); // part -> its content as the server sent it

  const key = (part) => part.dataset.part;
  const parts = (root) => [...root.querySelectorAll("[data-part]")];

  function content(part) {
    const copy = part.cloneNode(true);
    copy.querySelectorAll("input[name=key]").forEach((i) => i.remove());
    return copy.innerHTML;
  }

  function isTouched(part) {
    const fields = [...part.querySelectorAll("form input:not([type=hidden]), form select, form textarea")];
    return fields.some((f) =>
      f.type === "checkbox" ? f.checked !== f.defaultChecked
      : f.tagName === "SELECT" ? [...f.options].some((o, i) => o.selected !== (o.defaultSelected || (i === 0 && ![...f.options].some((p) => p.defaultSelected))))
      : f.value !== f.defaultValue) || part.contains(document.activeElement) && /INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName);
  }

  function keepOpen(from, to) {
    const open = [...from.querySelectorAll("details")].map((d) => d.open);
    [...to.querySelectorAll("details")].forEach((d, i) => { d.open = d.open || !!open[i]; });
  }

  const draw = (part) => { if (typeof drawCharts === "function") { drawCharts(part); } };

  function put(oldPart, newPart) {
    keepOpen(oldPart, newPart);
    oldPart.replaceWith(newPart);
    draw(newPart);
  }

  function gone(part) {
    // somebody else has answered this one while you were typing
    if (part.classList.contains("gone")) { return; }
    part.classList.add("gone");
    const note = document.createElement("p");
    note.className = "doubt";
    note.textContent = "This experiment is no longer pending: somebody else has answered it. "
      + "If you save, airbo asks whether to correct it.";
    part.prepend(note);
  }

  function merge(page, sent) {
    document.body.dataset.live = page.body.dataset.live || "";
    const fresh = new Map(parts(page).map((p) => [key(p), p]));
    for (const part of parts(document)) {
      const next = fresh.get(key(part));
      const mine = key(part) === sent;
      if (!next) {
        if (isTouched(part) && !mine) { gone(part); } else { shown.delete(key(part)); part.remove(); }
        continue;
      }
      const text = content(next);
      if (!mine && shown.get(key(part)) === text) { continue; }
      if (!mine && isTouched(part)) { continue; }
      shown.set(key(part), text);
      put(part, document.importNode(next, true));
    }
    for (const list of page.querySelectorAll("[data-list]")) {
      const here = document.querySelector(`[data-list="${list.dataset.list}"]`);
      if (!here) { continue; }
      let before = here.firstElementChild;
      for (const child of list.children) {
        const name = key(child);
        const found = [...here.children].find((c) => key(c) === name);
        if (found) { before = found.nextElementSibling; continue; }
        const made = document.importNode(child, true);
        shown.set(name, content(child));
        here.insertBefore(made, before);
        draw(made);
      }
    }
    for (const message of page.querySelectorAll("#messages > .message")) {
      const here = document.getElementById("messages");
      if (sent) { here.replaceChildren(); sent = ""; }
      here.append(document.importNode(message, true));
    }
    ready();
  }

  async function load(address, options, sent) {
    const answer = await fetch(address, { credentials: "same-origin", ...options });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!page.querySelector("[data-part]")) { throw new Error(page.body.textContent); }
    merge(page, sent);
    const wrong = document.querySelector("[aria-invalid]");
    if (sent && wrong) { wrong.focus(); }
  }

  function say(text) {
    const note = document.createElement("div");
    note.className = "message problem";
    const words = document.createElement("p");
    words.textContent = text;
    note.append(words);
    document.getElementById("messages")?.append(note);
  }

  function light(lost) {
    const place = document.getElementById("connection");
    if (!place) { return; }
    const lamp = place.querySelector(".light");
    lamp.hidden = false;
    lamp.classList.toggle("lost", lost);
    place.querySelector(".words").textContent = lost ? "no connection: what you see may be old" : "live";
  }

  async function look() {
    try {
      const answer = await fetch("/live", { credentials: "same-origin" });
      if (!answer.ok) { throw new Error(String(answer.status)); }
      light(false);
      const { version } = await answer.json();
      if (version !== document.body.dataset.live) {
        if (document.querySelector("[data-part]")) { await load(location.pathname + location.search, {}, ""); }
        else { location.reload(); }
      }
    } catch (error) { light(true); }
  }

  let timer = 0;
  async function go() {
    clearTimeout(timer);
    if (!document.hidden) { await look(); }
    timer = setTimeout(go, EVERY);
  }

  async function send(event) {
    const form = event.target;
    if (form.method !== "post") { return; }
    event.preventDefault();
    const button = event.submitter;
    const address = button?.getAttribute("formaction") || form.getAttribute("action");
    const buttons = form.querySelectorAll("button");
    buttons.forEach((b) => { b.disabled = true; });
    const part = form.closest("[data-part]");
    try {
      const body = new URLSearchParams(new FormData(form));
      await load(address, { method: "POST", body }, part ? key(part) : "message");
    } catch (error) {
      say("No answer came. Your entries are still here: send them again. The same report counts once.");
    }
    buttons.forEach((b) => { b.disabled = false; });
  }

  // sliders fill in their field; when one stands still, or a field was changed, the page answers
  const field = (slider) => slider.form.elements[slider.dataset.for];
  const scaled = (slider, value) => slider.dataset.log ? Math.log(value) : Number(value);

  function slide(event) {
    const slider = event.target;
    if (!slider.matches(".profiler input[type=range]")) { return; }
    const [low, high] = [slider.dataset.low, slider.dataset.high].map((end) => scaled(slider, end));
    const at = low + slider.value * (high - low);
    const value = slider.dataset.log ? Math.exp(at) : at;
    field(slider).value = slider.dataset.whole ? Math.round(value) : Number(value.toPrecision(4));
  }

  async function profile(event) {
    const form = event.target.closest(".profiler");
    if (!form) { return; }
    if (event.type === "submit") { event.preventDefault(); }
    const address = `${form.getAttribute("action")}?${new URLSearchParams(new FormData(form))}`;
    document.querySelector("[data-part=profile]").classList.add("old");
    history.replaceState(null, "", address);
    await load(address, {}, "").catch(() => say("No answer came. Try again."));
    document.querySelector("[data-part=profile]").classList.remove("old");
  }

  function ready() {
    document.querySelectorAll(".profiler input[type=range]").forEach((slider) => {
      const [low, high] = [slider.dataset.low, slider.dataset.high].map((end) => scaled(slider, end));
      slider.hidden = false;
      slider.value = (scaled(slider, field(slider).value.replace(",", ".")) - low) / (high - low);
    });
    document.querySelectorAll(".message .close").forEach((b) => {
      b.hidden = false;
      b.onclick = () => b.closest(".message").remove();
    });
  }

  parts(document).forEach((p) => shown.set(key(p), content(p)));
  addEventListener("load", () => draw(document));
  document.addEventListener("submit", send);
  document.addEventListener("submit", profile);
  document.addEventListener("input", slide);
  document.addEventListener("change", profile);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { go(); } });
  ready();
  go();
})();
