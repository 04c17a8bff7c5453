"use strict";

// A link to an answer opens it.
(() => {
  const open = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target?.localName === "details") target.open = true;
  };
  window.addEventListener("hashchange", open);
  open();
})();

// The one interactive table of a page: sorting, filtering, column views, and all of it in the
// address, so that what is seen can be linked. Without this script every row and column is there.
(() => {
  const table = document.querySelector("table[data-table]");
  const form = document.querySelector("form.controls");
  if (!table || !form) return;

  const headers = [...table.tHead.rows[0].cells];
  const keys = headers.map((header) => header.dataset.key);
  const search = form.elements.q;
  const selects = [...form.querySelectorAll("select")];
  const views = [...form.querySelectorAll("input[name=view]")];
  const output = form.querySelector("output");
  // Of a long group the first so many rows are laid out, until all are asked for.
  let most = Number(form.dataset.most ?? Infinity);
  const more = document.createElement("button");
  const collator = new Intl.Collator("en", { numeric: true });
  const groups = [...table.tBodies].map((body) => ({
    body,
    rows: [...body.rows]
      .filter((row) => !row.classList.contains("group"))
      .map((row) => ({ row, text: row.textContent.toLowerCase() })),
  }));
  for (const group of groups) group.ordered = group.rows;
  const all = groups.flatMap(({ rows }) => rows);
  let sort = null; // { key, dir } or null: the order in which the page was made

  const valueOf = (row, index) => {
    const cell = row.cells[index];
    const text = cell.dataset.v ?? cell.textContent.trim();
    if (headers[index].dataset.type !== "n") return text || null;
    return text === "" || Number.isNaN(Number(text)) ? null : Number(text);
  };

  const compare = (a, b) => (typeof a === "number" ? a - b : collator.compare(a, b));

  function showOrder() {
    const index = sort ? keys.indexOf(sort.key) : -1;
    const sign = sort?.dir === "desc" ? -1 : 1;
    headers.forEach((header, n) => {
      if (n === index) header.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
      else header.removeAttribute("aria-sort");
    });
    for (const group of groups) {
      group.ordered = group.rows;
      if (index >= 0) {
        // What is not known comes last, whichever way.
        group.ordered = group.rows
          .map((own) => [valueOf(own.row, index), own])
          .sort(([a], [b]) =>
            a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b))
          .map(([, own]) => own);
      }
      group.body.append(...group.ordered.map(({ row }) => row));
    }
  }

  function showRows() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = selects.filter((select) => select.value);
    let fitting = 0;
    let left = 0;
    for (const { body, ordered } of groups) {
      let own = 0;
      for (const { row, text } of ordered) {
        const fits =
          words.every((word) => text.includes(word)) &&
          wanted.every(({ name, value }) => (row.dataset[name] ?? "").includes(`|${value}|`));
        own += fits;
        row.hidden = !fits || own > most;
      }
      body.hidden = own === 0;
      fitting += own;
      left += Math.max(0, own - most);
    }
    const named = `${all.length} ${form.dataset.of}`;
    output.value = fitting === all.length ? named : `${fitting} of ${named}`;
    more.hidden = left === 0;
    more.textContent = `Show the other ${left}`;
  }

  function showColumns() {
    const view = views.find((radio) => radio.checked)?.value;
    if (!view) return;
    const visible = headers.map(
      ({ dataset }) => !dataset.views || dataset.views.split(" ").includes(view));
    for (const row of [table.tHead.rows[0], ...all.map((own) => own.row)]) {
      [...row.cells].forEach((cell, n) => (cell.hidden = !visible[n]));
    }
  }

  function show() {
    showColumns();
    showOrder();
    showRows();
  }

  function readAddress() {
    const asked = new URLSearchParams(location.hash.slice(1));
    sort = null;
    search.value = asked.get("q") ?? "";
    for (const select of selects) {
      const value = asked.get(select.name);
      select.value = [...select.options].some((option) => option.value === value) ? value : "";
    }
    const view =
      views.find((radio) => radio.value === asked.get("view")) ??
      views.find((radio) => radio.defaultChecked);
    if (view) view.checked = true;
    const key = asked.get("sort");
    if (key && keys.includes(key)) sort = { key, dir: asked.get("dir") === "desc" ? "desc" : "asc" };
    show();
  }

  function writeAddress() {
    const state = new URLSearchParams();
    if (search.value) state.set("q", search.value);
    for (const { name, value } of selects) if (value) state.set(name, value);
    const view = views.find((radio) => radio.checked && !radio.defaultChecked);
    if (view) state.set("view", view.value);
    if (sort) {
      state.set("sort", sort.key);
      state.set("dir", sort.dir);
    }
    const hash = state.toString();
    history.replaceState(null, "", hash ? `#${hash}` : location.href.split("#")[0]);
  }

  headers.forEach((header) => {
    const { key, first } = header.dataset;
    if (!key) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      const start = first ?? "asc";
      const other = start === "asc" ? "desc" : "asc";
      sort = { key, dir: sort?.key === key && sort.dir === start ? other : start };
      showOrder();
      showRows();
      writeAddress();
    });
  });

  form.addEventListener("input", ({ target }) => {
    if (target.name === "view") showColumns();
    else showRows();
    writeAddress();
  });
  more.type = "button";
  more.addEventListener("click", () => {
    most = Infinity;
    showRows();
  });
  output.after(more);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => {
    sort = null;
    // The fields have their old values until this event is over.
    setTimeout(() => {
      show();
      writeAddress();
    });
  });
  window.addEventListener("hashchange", () => {
    // A link to a place of the page is no state of the table.
    if (!location.hash || location.hash.includes("=")) readAddress();
  });

  form.hidden = false;
  readAddress();
})();
