// The frame of every form: language, progress, autosave, overview, result. A kind of form (rating.js,
// mcq.js) says what its pages hold. Texts from the study reach the page as text nodes only.
"use strict";
window.formKinds = {};

window.startForm = function () {
  const form = JSON.parse(document.getElementById("form-data").textContent);
  const kind = window.formKinds[form.kind];
  const root = document.getElementById("form");
  const EMPTY = { data: {}, seconds: {}, changed: {}, locked: [], consented_at: null };
  const LOCALES = { en: "", "zh-Hant": "zh-tw" };
  let state = {
    language: /^zh/i.test(navigator.language) ? "zh-Hant" : "en",
    page: 0,
    ...EMPTY,
  };
  let survey = null;
  let storable = true;
  let handedIn = false;
  let shownAt = null;

  // ---- Texts and nodes

  const fill = (text, values) =>
    text.replace(/\{(\w+)\}/g, (whole, name) => (name in (values || {}) ? values[name] : whole));
  const t = (key, values) => fill(form.texts[key][state.language], values);
  const inLanguage = (text) => (typeof text === "string" ? text : text[state.language]);

  function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value !== null && value !== false) node.setAttribute(name, value);
    }
    node.append(...children.flat().filter((child) => child !== null));
    return node;
  }

  // What the study wrote, in English whatever the interface speaks.
  const english = (tag, text, attributes) =>
    make(tag, { lang: "en", class: "given", ...attributes }, text);

  // A choice's text passes through the library's machinery, where {name} means a value; the
  // invisible joiner makes it mean nothing.
  const inert = (text) => text.replaceAll("{", "{\u2060");

  const builders = {};
  const block = (name, build) => {
    builders[name] = build;
    return { type: "html", name, html: '<div class="slot"></div>' };
  };

  const api = { form, t, inLanguage, language: () => state.language, data: () => state.data, make, english, block, inert };

  // ---- Keeping what was entered

  const isForm = (found) => found && typeof found.data === "object" && found.data !== null;

  function load() {
    try {
      const found = JSON.parse(window.localStorage.getItem(form.key));
      window.localStorage.setItem(form.key + "/test", "1");
      window.localStorage.removeItem(form.key + "/test");
      if (isForm(found)) state = { ...state, ...found };
    } catch (error) {
      storable = false;
    }
  }

  function save() {
    state.saved_at = new Date().toISOString();
    if (storable) {
      try {
        window.localStorage.setItem(form.key, JSON.stringify(state));
      } catch (error) {
        storable = false;
      }
    }
    showState();
  }

  function forget() {
    if (!window.confirm(t("forget_sure"))) return;
    try {
      window.localStorage.removeItem(form.key);
    } catch (error) {
      storable = false;
    }
    state = { ...EMPTY, language: state.language, page: 0 };
    render();
  }

  // Seconds for which a page was in front of the reader.
  function stopClock() {
    if (shownAt !== null && survey) {
      const name = survey.currentPage.name;
      const seconds = (performance.now() - shownAt) / 1000;
      state.seconds[name] = Math.round(((state.seconds[name] || 0) + seconds) * 10) / 10;
    }
    shownAt = null;
  }

  function startClock() {
    shownAt = document.hidden ? null : performance.now();
  }

  // ---- The survey

  const consented = () => (state.data.consent || []).includes("agree");
  const locked = (page) =>
    state.locked.includes(page.group) || (page.needs && !state.locked.includes(page.needs));
  const open = () => kind.pages(form).filter((page) => !locked(page));

  function render() {
    stopClock();
    document.documentElement.lang = state.language;
    for (const name of Object.keys(builders)) delete builders[name];
    const pages = [
      { name: "consent", title: t("consent_title"), elements: consentElements() },
      ...kind.elements(api),
      { name: "finish", title: t("finish_title"), elements: [block("finish", finishBlock)] },
    ];
    survey = new Survey.Model({
      pages,
      showTitle: false,
      showQuestionNumbers: false,
      questionErrorLocation: "bottom",
      clearInvisibleValues: "onHidden",
      textUpdateMode: "onTyping",
      focusOnFirstError: true,
      requiredMark: "",
      widthMode: "responsive",
    });
    survey.showCompleteButton = false;
    survey.locale = LOCALES[state.language];
    survey.data = JSON.parse(JSON.stringify(state.data));
    survey.currentPageNo = consented() ? state.page : 0;
    survey.onAfterRenderQuestion.add((_, options) => {
      const slot = options.htmlElement.querySelector(".slot");
      const build = builders[options.question.name];
      if (kind.rendered) kind.rendered(options.question, options.htmlElement);
      if (slot && build) slot.replaceChildren(build());
    });
    survey.onValueChanged.add((_, options) => {
      state.data = JSON.parse(JSON.stringify(survey.data));
      state.changed[options.name] = new Date().toISOString();
      if (options.name === "consent") state.consented_at = consented() ? state.changed.consent : null;
      handedIn = false;
      save();
    });
    survey.onCurrentPageChanging.add((_, options) => {
      const page = kind.pages(form).find((one) => one.name === options.newCurrentPage.name);
      if (page && state.locked.includes(page.group)) options.allow = false;
      if (options.newCurrentPage.name !== "consent" && !consented()) {
        options.allow = false;
        survey.currentPage.validate(true, true);
      }
      if (options.allow !== false) stopClock();
    });
    survey.onCurrentPageChanged.add(() => {
      state.page = survey.currentPageNo;
      lock();
      startClock();
      save();
      toTop();
    });
    lock();
    frame();
    survey.render(document.getElementById("survey"));
    startClock();
    showState();
  }

  // A page may close an earlier group for good.
  function lock() {
    const pages = kind.pages(form);
    const page = pages.find((one) => one.name === survey.currentPage.name);
    if (page && page.locks) state.locked = [...new Set([...state.locked, page.locks])];
    const before = pages[pages.indexOf(page) - 1];
    survey.showPrevButton = !(before && state.locked.includes(before.group));
  }

  function toTop() {
    window.scrollTo(0, 0);
    const title = document.getElementById("page-title");
    title.textContent = survey.currentPage.title;
    title.focus({ preventScroll: true });
  }

  function goTo(name) {
    // Closed, so that the page itself is what a phone shows next.
    document.getElementById("overview").open = false;
    survey.currentPage = survey.getPageByName(name);
  }

  // ---- The frame around it

  function frame() {
    const other = state.language === "en" ? "zh-Hant" : "en";
    const title = make("h2", { id: "page-title", tabindex: "-1" }, survey.currentPage.title);
    root.replaceChildren(
      make(
        "header",
        {},
        make(
          "div",
          { class: "top" },
          make("h1", {}, inLanguage(form.title)),
          make(
            "button",
            { type: "button", id: "language", lang: other, onclick: switchLanguage },
            form.texts.language_name[other],
          ),
        ),
        make("p", { class: "who" }, t("who", form)),
        make("div", { id: "progress" }),
        make("details", { id: "overview" }, make("summary", {}), make("ol", {})),
        // No live region: it changes with every key, and a screen reader would read it out.
        make("p", { id: "kept" }),
        make("p", { id: "refused", class: "notice", role: "alert", hidden: "" }),
      ),
      make("main", {}, title, make("div", { id: "survey" })),
      make(
        "footer",
        {},
        make(
          "details",
          {},
          make("summary", {}, t("more")),
          make(
            "p",
            {},
            make("label", { for: "resume" }, t("resume")),
            " ",
            make("input", { type: "file", id: "resume", accept: ".json", onchange: resume }),
          ),
          make("p", { id: "resumed", role: "alert" }),
          make("p", {}, make("button", { type: "button", id: "forget", onclick: forget }, t("forget"))),
        ),
      ),
    );
    document.title = inLanguage(form.title) + " · " + t("who", form);
  }

  function switchLanguage() {
    state.language = state.language === "en" ? "zh-Hant" : "en";
    save();
    render();
    document.getElementById("language").focus();
  }

  const left = (page) => (page.count ? kind.missing(form, page.name, state.data) : 0);

  function showState() {
    const pages = kind.pages(form);
    const all = pages.reduce((sum, page) => sum + page.count, 0);
    const missing = pages.reduce((sum, page) => sum + left(page), 0);
    const words = t("progress", { done: all - missing, all });
    const bar = make("progress", { max: all, value: all - missing, "aria-label": t("progress_label") });
    document.getElementById("progress").replaceChildren(bar, make("span", {}, words));
    if (kind.refresh) kind.refresh(api);
    const overview = document.getElementById("overview");
    overview.hidden = !consented();
    overview.querySelector("summary").textContent = t("overview");
    const current = survey.currentPage.name;
    const entries = [
      { name: "consent", short: t("consent_short"), count: 0 },
      ...open(),
      { name: "finish", short: t("finish_short"), count: 0 },
    ];
    overview.querySelector("ol").replaceChildren(
      ...entries.map((page) => make("li", {}, entryButton(page, current))),
    );
    document.getElementById("kept").textContent = !storable
      ? ""
      : state.saved_at
        ? t("kept", { time: new Date(state.saved_at).toLocaleTimeString(state.language) })
        : t("will_keep");
    const refused = document.getElementById("refused");
    refused.hidden = storable;
    refused.textContent = storable ? "" : t("refused");
  }

  function entryButton(page, current) {
    const missing = left(page);
    const short = page.short || t(page.text, page);
    const words = !page.count ? short : missing ? t("left", { short, missing }) : t("done", { short });
    return make(
      "button",
      {
        type: "button",
        class: !page.count ? "plain" : missing ? "unfinished" : "finished",
        "aria-current": page.name === current ? "step" : null,
        onclick: () => goTo(page.name),
      },
      words,
    );
  }

  // ---- Page 1

  function consentElements() {
    const statement = block("statement", () =>
      make(
        "div",
        { class: "statement" },
        make("p", {}, t("statement_intro", form)),
        form.statement.flatMap((part) => [
          make("h3", {}, inLanguage(part.heading)),
          make("p", {}, inLanguage(part.text)),
        ]),
      ),
    );
    const box = {
      type: "checkbox",
      name: "consent",
      title: t("consent_question"),
      isRequired: true,
      requiredErrorText: t("consent_needed"),
      choices: [{ value: "agree", text: t("consent_box") }],
    };
    return [statement, box];
  }

  // ---- The last page

  function resultText() {
    stopClock();
    startClock();
    const body = {
      ...form.result,
      language: state.language,
      consent: {
        given: consented(),
        at: state.consented_at,
        statement: form.statement_version,
      },
      saved_at: new Date().toISOString(),
      complete: !kind.pages(form).some(left),
      ...kind.result(form, state),
    };
    return JSON.stringify(body, null, 1) + "\n";
  }

  function finishBlock() {
    const unfinished = kind.pages(form).filter(left);
    const list = unfinished.map((page) => make("li", {}, entryButton(page, "")));
    const area = make("textarea", {
      id: "result-text",
      readonly: "",
      rows: "8",
      "aria-label": t("result_label"),
      spellcheck: "false",
    });
    const said = make("p", { role: "status", id: "handed-in" });
    const download = () => {
      const link = make("a", {
        href: URL.createObjectURL(new Blob([resultText()], { type: "application/json" })),
        download: form.file_name,
      });
      document.body.append(link);
      link.click();
      link.remove();
      handedIn = true;
      said.textContent = t("downloaded", { file: form.file_name, to: inLanguage(form.return_to) });
    };
    const copy = async () => {
      area.value = resultText();
      area.select();
      let copied = false;
      try {
        await navigator.clipboard.writeText(area.value);
        copied = true;
      } catch (error) {
        copied = document.execCommand("copy");
      }
      handedIn = handedIn || copied;
      said.textContent = t(copied ? "copied" : "copy_yourself", { to: inLanguage(form.return_to) });
    };
    area.value = resultText();
    return make(
      "div",
      {},
      unfinished.length
        ? make("div", { class: "notice" }, make("p", {}, t("unfinished")), make("ul", {}, list))
        : make("p", {}, t("all_done")),
      make("p", {}, t("send", { to: inLanguage(form.return_to) })),
      make("button", { type: "button", id: "download", class: "main", onclick: download }, t("download")),
      said,
      make(
        "details",
        {},
        make("summary", {}, t("no_file")),
        make("p", {}, t("no_file_help", { to: inLanguage(form.return_to) })),
        area,
        make("button", { type: "button", id: "copy", onclick: copy }, t("copy")),
      ),
    );
  }

  async function resume(event) {
    const said = document.getElementById("resumed");
    try {
      const found = JSON.parse(await event.target.files[0].text());
      const same = Object.keys(form.result).every(
        (name) => JSON.stringify(found[name]) === JSON.stringify(form.result[name]),
      );
      if (!same) throw new Error("another form");
      state = { ...EMPTY, language: state.language, page: 0, ...kind.restore(form, found) };
      state.data.consent = found.consent.given ? ["agree"] : [];
      state.consented_at = found.consent.at;
      save();
      render();
      document.getElementById("resumed").textContent = t("resumed");
    } catch (error) {
      said.textContent = t("resume_failed");
    }
  }

  // ---- Start

  window.addEventListener("storage", (event) => {
    // The same form in a second tab: the newer entries win in both.
    if (event.key !== form.key || !event.newValue) return;
    const found = JSON.parse(event.newValue);
    if (isForm(found)) {
      state = { ...found, language: state.language, page: state.page };
      survey.data = JSON.parse(JSON.stringify(state.data));
      showState();
    }
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      stopClock();
      if (Object.keys(state.data).length) save();
    } else {
      startClock();
    }
  });
  window.addEventListener("beforeunload", (event) => {
    if (!storable && !handedIn && Object.keys(state.data).length) event.preventDefault();
  });

  // The one icon with a style attribute, which the policy forbids; no form shows it.
  delete Survey.SvgRegistry.icons.timercircle;
  Survey.settings.animationEnabled = false;
  Survey.settings.titleTags.panel = "h3";
  Survey.settings.titleTags.question = kind.questionTag;
  load();
  render();
};
