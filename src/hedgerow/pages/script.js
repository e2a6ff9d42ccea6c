"use strict";
(() => {
  const tip = document.getElementById("tip");
  const place = (x, y) => {
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 12, innerWidth - box.width - 4)) + "px";
    tip.style.top = (y + 16 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 16) + "px";
  };
  const show = (mark, x, y) => { tip.textContent = mark.dataset.tip || mark.getAttribute("aria-label"); tip.hidden = false; place(x, y); };
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(fold => { fold.open = true; }));
  const marked = event => event.target.closest ? event.target.closest("[data-tip]") : null;
  document.addEventListener("pointermove", event => {
    const mark = marked(event);
    if (mark) show(mark, event.clientX, event.clientY); else tip.hidden = true;
  });
  document.addEventListener("pointerdown", event => { const mark = marked(event); if (mark) show(mark, event.clientX, event.clientY); });
  document.addEventListener("focusin", event => {
    const mark = marked(event);
    if (!mark) { tip.hidden = true; return; }
    const box = mark.getBoundingClientRect();
    show(mark, box.left + box.width / 2, box.bottom);
  });
  document.addEventListener("focusout", () => { tip.hidden = true; });

  // one cell of a heat map takes part in the tab order; arrow keys walk from there
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  document.addEventListener("keydown", event => {
    if (event.key === "Escape") { tip.hidden = true; return; }
    const cell = event.target.closest ? event.target.closest("[data-cell]") : null;
    if (!cell || !steps[event.key]) return;
    event.preventDefault();
    const [row, column] = cell.dataset.cell.split(",").map(Number);
    const [down, right] = steps[event.key];
    const next = cell.closest("svg").querySelector('[data-cell="' + (row + down) + "," + (column + right) + '"]');
    if (next) { cell.tabIndex = -1; next.tabIndex = 0; next.focus(); }
  });

  for (const group of document.querySelectorAll("[data-tabs]")) {
    const buttons = [...group.querySelectorAll("button[data-show]")];
    const choose = name => {
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.show === name));
      for (const panel of group.querySelectorAll("[data-panel]")) panel.hidden = panel.dataset.panel !== name;
    };
    for (const button of buttons) button.addEventListener("click", () => choose(button.dataset.show));
    if (buttons.length) choose(buttons[0].dataset.show);
  }
})();
