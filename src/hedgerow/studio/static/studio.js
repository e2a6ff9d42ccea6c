"use strict";
(() => {
  document.documentElement.classList.add("scripted");

  // a command that is at work: its phases, and the whole page again when it has ended
  const work = document.querySelector("[data-progress]");
  const look = async () => {
    try {
      const answer = await fetch(work.dataset.progress);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").body;
      if (!answer.ok || fresh.querySelector("[data-ended]")) { location.reload(); return; }
      if (fresh.textContent !== work.textContent) work.replaceChildren(...fresh.childNodes);
    } catch { /* the studio has ended, or is about to be back */ }
    setTimeout(look, 1000);
  };
  if (work) setTimeout(look, 1000);

  // a list of columns: those whose line holds some letters; tick all of them, or none
  const all = document.querySelector("[data-tick]"), holding = document.querySelector("[data-holding]");
  if (all) {
    const lines = [...document.querySelectorAll(".columns tbody tr")];
    holding?.addEventListener("input", () => {
      const letters = holding.value.toLowerCase();
      for (const line of lines) line.hidden = !line.textContent.toLowerCase().includes(letters);
    });
    holding?.addEventListener("keydown", event => { if (event.key === "Enter") event.preventDefault(); });
    all.addEventListener("click", () => {
      const boxes = lines.filter(line => !line.hidden).map(line => line.querySelector("input")), full = boxes.every(box => box.checked);
      for (const box of boxes) box.checked = !full;
    });
  }

  // a column: the fields of its type, and what the schema says of them while they are typed
  const form = document.querySelector("form[data-check]");
  if (!form) return;
  const said = form.querySelector("[data-said]");
  const choose = () => {
    const [kind] = form.elements.type.value.split(" ");
    for (const part of document.querySelectorAll("[data-kinds]")) part.hidden = !part.dataset.kinds.split(" ").includes(kind);
    for (const bound of [form.elements.min, form.elements.max]) {
      const picks = kind === "date" && (!bound.value || /^\d{4}-\d\d-\d\d$/.test(bound.value));
      bound.type = picks ? "date" : "text";
    }
  };
  let waiting = 0, asked = 0;
  const check = async () => {
    const mine = ++asked;
    if (!form.elements.type.value) return;
    try {
      const answer = await fetch(form.dataset.check, { method: "POST", body: new URLSearchParams(new FormData(form)) });
      const text = await answer.text();
      if (!answer.ok || mine !== asked) return;
      said.textContent = text;
      said.dataset.good = text.startsWith("This can be used");
    } catch { said.textContent = ""; }
  };
  form.elements.type.addEventListener("change", choose);
  form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(check, 300); });
  choose();
})();
