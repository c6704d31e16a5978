// SPDX-License-Identifier: Apache-2.0
// Sorts and filters the table of series. Without it the page is complete.
"use strict";
(() => {
  const table = document.getElementById("table");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const heads = Array.from(table.tHead.rows[0].cells);

  // A number where the cell has one, else its text; rows without a value come last.
  const key = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
    return cell.classList.contains("number") ? NaN : cell.textContent.trim().toLowerCase();
  };
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  const sort = (column, ascending) => {
    heads.forEach((h) => h.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", ascending ? "ascending" : "descending");
    rows
      .map((row, at) => ({ row, at, key: key(row, column) }))
      .sort((a, b) => {
        const none = Number.isNaN(a.key) - Number.isNaN(b.key);
        if (none || Number.isNaN(a.key)) return none || a.at - b.at;
        return (ascending ? 1 : -1) * compare(a.key, b.key) || a.at - b.at;
      })
      .forEach((entry) => body.append(entry.row));
  };
  heads.forEach((head, column) => {
    if (head.dataset.plain !== undefined) return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    // Names from A to Z first, numbers and standings from the largest.
    const first = column === 1;
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      sort(column, now ? now === "descending" : first);
    });
  });

  const find = document.getElementById("find");
  const show = document.getElementById("show");
  const filter = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = (show.value !== "" && row.dataset.standing !== show.value) || !words.every((w) => text.includes(w));
      shown += !row.hidden;
    }
    document.getElementById("shown").value = `${shown} of ${rows.length}`;
    document.getElementById("nothing").hidden = shown > 0;
  };
  find.addEventListener("input", filter);
  show.addEventListener("change", filter);
  find.form.addEventListener("submit", (event) => event.preventDefault());
  find.form.hidden = false;
  if (find.value || show.value) filter(); // what a reload kept

  // On paper everything is open.
  const details = Array.from(document.querySelectorAll("details"));
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = details.filter((d) => !d.open);
    closed.forEach((d) => (d.open = true));
  });
  window.addEventListener("afterprint", () => closed.forEach((d) => (d.open = false)));
})();
