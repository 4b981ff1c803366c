"use strict";
(() => {
  document.documentElement.classList.add("scripted");
  const value = (row, i) => {
    const cell = row.cells[i];
    if (!cell) return null;
    const v = cell.dataset.v;
    return v === undefined ? cell.textContent.trim() : Number(v);
  };
  // Cells without a value stay below in both directions.
  const order = (a, b, sign) => {
    const empty = (x) => x === null || x === "" || x === "–";
    if (empty(a) || empty(b)) return empty(a) - empty(b);
    if (typeof a === "number" && typeof b === "number") return sign * (a - b);
    return sign * String(a).localeCompare(String(b), undefined, { numeric: true });
  };
  for (const table of document.querySelectorAll("section.table table")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, i) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        heads.forEach((one) => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
        const body = table.tBodies[0];
        body.append(...[...body.rows].sort((a, b) => order(value(a, i), value(b, i), sign)));
      });
    });
  }
  // A table or chart that is wider than its region has a remark.
  const mark = () => {
    const regions = [...document.querySelectorAll(".scroll, figure > div")];
    const wide = regions.map((one) => one.scrollWidth > one.clientWidth + 1);
    regions.forEach((one, i) => one.classList.toggle("wide", wide[i]));
  };
  mark();
  window.addEventListener("resize", mark);
  for (const field of document.querySelectorAll("input[type=search]")) {
    const rows = [...document.getElementById(field.dataset.table).tBodies[0].rows];
    const found = document.getElementById(field.dataset.table + "-found");
    const names = rows.map((row) => row.textContent.toLowerCase());
    field.addEventListener("input", () => {
      const sought = field.value.trim().toLowerCase();
      let n = 0;
      rows.forEach((row, i) => {
        row.hidden = !names[i].includes(sought);
        n += !row.hidden;
      });
      found.textContent = `${n} of ${rows.length} rows`;
    });
  }
  const slider = document.getElementById("threshold");
  if (slider) {
    const data = JSON.parse(document.getElementById("counts-data").textContent);
    const rows = [...document.getElementById("counts").tBodies[0].rows];
    const said = document.getElementById("threshold-value");
    slider.addEventListener("input", () => {
      const at = Number(slider.value);
      said.textContent = data.thresholds[at];
      slider.setAttribute("aria-valuetext", data.thresholds[at]);
      data.rows.forEach((columns, r) => {
        const [tp, fp, fn] = columns.map((column) => column[at]);
        const share = (a, b) => (b ? a / b : null);
        const numbers = [tp, fp, fn, share(tp, tp + fp), share(tp, tp + fn), share(2 * tp, 2 * tp + fp + fn)];
        numbers.forEach((v, i) => {
          const cell = rows[r].cells[i + 1];
          cell.textContent = v === null ? "–" : i < 3 ? v.toLocaleString("en") : v.toFixed(4);
          if (v === null) delete cell.dataset.v;
          else cell.dataset.v = v;
        });
      });
    });
  }
})();
