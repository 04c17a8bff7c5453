// Multiple-choice questions for practitioners: all of them closed book, then again open book.
"use strict";
window.formKinds.mcq = (function () {
  const CONDITIONS = ["closed", "open"];
  const pageName = (condition, q) => condition + q;
  const field = (condition, q) => `${condition}${q}_answer`;

  // Open-book pages appear once the closed book is shut, and shut it for good.
  const pages = (form) => [
    { name: "guide", text: "guide_short", group: "guide", count: 0 },
    ...CONDITIONS.flatMap((condition) => [
      ...(condition === "open"
        ? [{ name: "between", text: "between_short", group: "closed", count: 0 }]
        : []),
      ...form.questions.map((_, q) => ({
        name: pageName(condition, q),
        number: q + 1,
        text: condition + "_short",
        group: condition,
        count: 1,
        locks: condition === "open" ? "closed" : null,
        needs: condition === "open" ? "closed" : null,
      })),
    ]),
  ];

  const missing = (form, name, data) => (data[name + "_answer"] ? 0 : 1);

  function elements(api) {
    const { form, t, make, english, block } = api;
    const lines = (key) => block(key, () =>
      make("ul", { class: "steps" }, t(key).trim().split("\n").map((line) => make("li", {}, line))));
    const asked = (condition) =>
      form.questions.map((question, q) => {
        const name = pageName(condition, q);
        return {
          name,
          title: t(condition + "_title", { number: q + 1, all: form.questions.length }),
          elements: [
            block(name + "_block", () => english("p", question.question, { class: "asked" })),
            {
              type: "radiogroup",
              name: field(condition, q),
              title: t("your_answer"),
              choices: [
                ...question.choices.map((choice, n) => ({
                  value: "ABCD"[n],
                  text: api.inert(`${"ABCD"[n]}) ${choice}`),
                })),
                { value: form.cannot_tell, text: t("cannot_tell") },
              ],
            },
          ],
        };
      });
    return [
      { name: "guide", title: t("guide_title"), elements: [lines("guide")] },
      ...asked("closed"),
      { name: "between", title: t("between_title"), elements: [lines("between")] },
      ...asked("open"),
    ];
  }

  function rendered(question, node) {
    if (!question.name.endsWith("_answer")) return;
    for (const input of node.querySelectorAll("input")) {
      if ("ABCD".includes(input.value)) input.closest("label").lang = "en";
    }
  }

  const result = (form, state) => ({
    answers: CONDITIONS.flatMap((condition) =>
      form.questions.map((question, q) => ({
        item_id: question.item_id,
        condition,
        answer: state.data[field(condition, q)] || null,
        seconds: state.seconds[pageName(condition, q)] || null,
        answered_at: state.changed[field(condition, q)] || null,
      })),
    ),
  });

  // The reverse of result(). A closed book stays shut once an open-book answer is there.
  function restore(form, found) {
    const held = { data: {}, seconds: {}, changed: {}, locked: [] };
    for (const row of found.answers) {
      const q = form.questions.findIndex((question) => question.item_id === row.item_id);
      if (row.answer) held.data[field(row.condition, q)] = row.answer;
      if (row.seconds) held.seconds[pageName(row.condition, q)] = row.seconds;
      if (row.answered_at) held.changed[field(row.condition, q)] = row.answered_at;
      if (row.condition === "open" && row.seconds) held.locked = ["closed"];
    }
    return held;
  }

  return { pages, missing, elements, rendered, result, restore, questionTag: "h3" };
})();
