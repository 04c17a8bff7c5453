// A batch of questions with candidate answers, rated by the rubric.
"use strict";
window.formKinds.rating = (function () {
  const NONE = "none";
  const key = (question, candidate, what) => `q${question}c${candidate}_${what}`;

  // What is still to be done about an answer: [key of its text, dimension or null].
  function open(form, q, c, data) {
    const fields = [];
    const points = form.questions[q].essential_points;
    if (points.length && !(data[key(q, c, "missed")] || []).length) fields.push(["points", null]);
    for (const dimension of form.dimensions) {
      const level = data[key(q, c, dimension.id)];
      const chosen = data[key(q, c, dimension.id + "_descriptors")] || [];
      if (!level) fields.push(["open_step1", dimension]);
      else if (level === form.major && !chosen.length) fields.push(["open_step2", dimension]);
    }
    return fields;
  }

  function stateText(api, q, c) {
    const { form, t, inLanguage } = api;
    const fields = open(form, q, c, api.data()).map(([text, dimension]) =>
      t(text, dimension && { label: inLanguage(dimension.label) }),
    );
    return fields.length ? t("still_open", { fields: fields.join(t("comma")) }) : t("answer_done");
  }

  // Called after every change.
  function refresh(api) {
    for (const node of document.querySelectorAll(".state")) {
      node.textContent = stateText(api, Number(node.dataset.q), Number(node.dataset.c));
      node.classList.toggle("done", !open(api.form, node.dataset.q, node.dataset.c, api.data()).length);
    }
  }

  const pages = (form) => [
    { name: "guide", text: "guide_short", group: "rating", count: 0 },
    ...form.questions.map((question, q) => ({
      name: "q" + q,
      number: q + 1,
      text: "question_short",
      group: "rating",
      count: question.candidates.length,
    })),
  ];

  function missing(form, name, data) {
    const q = Number(name.slice(1));
    return form.questions[q].candidates.filter((_, c) => open(form, q, c, data).length).length;
  }

  // Essential points and reference answer, for the question and again beside each answer.
  function yardstick(api, question, heading) {
    const { make, english, t } = api;
    const points = question.essential_points.map((point) => english("li", point));
    return [
      points.length ? [make(heading, {}, t("points")), make("ol", {}, points)] : [],
      make(heading, {}, t("reference")),
      english("p", question.reference_answer),
    ].flat();
  }

  function questionBlock(api, question) {
    const { make, english, t } = api;
    return make(
      "div",
      { class: "question" },
      english("p", question.question, { class: "asked" }),
      question.clauses
        ? make("p", {}, t("clauses"), " ", english("span", question.clauses))
        : null,
      yardstick(api, question, "h3"),
    );
  }

  function candidateBlock(api, question, candidate) {
    const { make, english, t } = api;
    return make(
      "div",
      { class: "candidate" },
      candidate.answer.trim()
        ? english("p", candidate.answer)
        : make("p", {}, t("empty_answer")),
      make(
        "details",
        {},
        make("summary", {}, t("reference_again")),
        yardstick(api, question, "h4"),
      ),
    );
  }

  const option = (api, choice) => ({
    value: choice.id,
    text: api.inLanguage(choice.label) + api.t("colon") + api.inLanguage(choice.about),
  });

  function judgement(api, question, q, c) {
    const { form, t, inLanguage } = api;
    const elements = [];
    if (question.essential_points.length) {
      elements.push({
        type: "checkbox",
        name: key(q, c, "missed"),
        title: t("missed", { n: c + 1 }),
        description: t("missed_help"),
        choices: question.essential_points.map((point, n) => ({
          value: String(n + 1),
          text: api.inert(`${n + 1}. ${point}`),
        })),
        showNoneItem: true,
        noneText: t("missed_none"),
      });
    }
    for (const dimension of form.dimensions) {
      const level = key(q, c, dimension.id);
      const label = inLanguage(dimension.label);
      elements.push(
        {
          type: "radiogroup",
          name: level,
          title: t("step1", { label, n: c + 1 }),
          description: inLanguage(dimension.about),
          choices: dimension.levels.map((one) => option(api, one)),
        },
        {
          type: "checkbox",
          name: level + "_descriptors",
          title: t("step2", { label, n: c + 1 }),
          description: t("step2_help"),
          visibleIf: `{${level}} = '${form.major}'`,
          choices: dimension.descriptors.map((one) => option(api, one)),
        },
      );
    }
    elements.push({
      type: "comment",
      name: key(q, c, "comment"),
      title: t("comment", { n: c + 1 }),
      description: t("comment_help"),
      maxLength: 4000,
      rows: 2,
    });
    return elements;
  }

  function guideBlock(api) {
    const { form, make, english, t, inLanguage } = api;
    const example = (one, n) =>
      make(
        "section",
        { class: "example" },
        make("h3", {}, t("example", { n })),
        questionBlock(api, one),
        make("h4", {}, t("example_answer")),
        english("p", one.candidate),
        make("h4", {}, t("example_rating")),
        make(
          "ul",
          {},
          inLanguage(one.rating).map((line) => make("li", {}, line)),
        ),
      );
    return make(
      "div",
      {},
      make("ol", { class: "steps" }, form.guide[api.language()].map((line) => make("li", {}, line))),
      make("p", {}, inLanguage(form.rule)),
      form.examples.map((one, n) => example(one, n + 1)),
    );
  }

  function elements(api) {
    const { form, t, block, make } = api;
    return [
      { name: "guide", title: t("guide_title"), elements: [block("guide_block", () => guideBlock(api))] },
      ...form.questions.map((question, q) => ({
        name: "q" + q,
        title: t("question_title", { number: q + 1, all: form.questions.length }),
        elements: [
          block(`q${q}_block`, () => questionBlock(api, question)),
          ...question.candidates.map((candidate, c) => ({
            type: "panel",
            name: `q${q}c${c}`,
            title: t("candidate", { n: c + 1, all: question.candidates.length }),
            elements: [
              block(`q${q}c${c}_block`, () => candidateBlock(api, question, candidate)),
              ...judgement(api, question, q, c),
              block(`q${q}c${c}_state`, () =>
                make("p", { class: "state", "data-q": String(q), "data-c": String(c) }, stateText(api, q, c))),
            ],
          })),
        ],
      })),
    ];
  }

  // The study's words are English whatever the interface speaks.
  function rendered(question, node) {
    if (!question.name.endsWith("_missed")) return;
    for (const input of node.querySelectorAll("input")) {
      if (input.value !== NONE) input.closest("label").lang = "en";
    }
  }

  function result(form, state) {
    const data = state.data;
    const rated = (q, c) =>
      Object.entries(state.changed)
        .filter(([name]) => name.startsWith(key(q, c, "")))
        .map(([, time]) => time)
        .sort()
        .pop() || null;
    const questions = form.questions.map((question, q) => ({
      position: question.position,
      item_id: question.item_id,
      seconds: state.seconds["q" + q] || null,
      ratings: question.candidates.map((candidate, c) => {
        const missed = data[key(q, c, "missed")] || [];
        const row = { candidate: candidate.candidate };
        for (const dimension of form.dimensions) {
          const level = data[key(q, c, dimension.id)] || null;
          const chosen = data[key(q, c, dimension.id + "_descriptors")] || [];
          row[dimension.id] = { level, descriptors: level === form.major ? chosen : [] };
        }
        row.missed_essential = missed.length
          ? missed.filter((one) => one !== NONE).map(Number).sort((a, b) => a - b)
          : null;
        row.comment = (data[key(q, c, "comment")] || "").trim() || null;
        row.rated_at = rated(q, c);
        return row;
      }),
    }));
    return { questions };
  }

  // The reverse of result().
  function restore(form, found) {
    const data = {};
    const changed = {};
    const seconds = {};
    found.questions.forEach((question, q) => {
      if (question.seconds) seconds["q" + q] = question.seconds;
      question.ratings.forEach((row, c) => {
        if (row.missed_essential) {
          const missed = row.missed_essential.map(String);
          data[key(q, c, "missed")] = missed.length ? missed : [NONE];
        }
        for (const dimension of form.dimensions) {
          const { level, descriptors } = row[dimension.id];
          if (level) data[key(q, c, dimension.id)] = level;
          if (descriptors.length) data[key(q, c, dimension.id + "_descriptors")] = descriptors;
        }
        if (row.comment) data[key(q, c, "comment")] = row.comment;
        if (row.rated_at) changed[key(q, c, "restored")] = row.rated_at;
      });
    });
    return { data, changed, seconds };
  }

  return { pages, missing, elements, rendered, refresh, result, restore, questionTag: "h4" };
})();
