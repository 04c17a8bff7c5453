// Builds this batch as a Google Form. Paste it into a new project at script.google.com and run
// createEnglishForm or createChineseForm; the log then shows the form's addresses.
//
// NOT RUN ON GOOGLE: it was run against a stand-in that records its calls, no more. Try the form
// yourself before you send it to anybody. Google keeps what raters enter: say so in the statement.
//
// Don't change the titles: the codes in [brackets] are what the import reads.

const FORM = {{ data }};

function createEnglishForm() {
  return create("en");
}

function createChineseForm() {
  return create("zh-Hant");
}

function create(language) {
  const held = FORM[language];
  const form = FormApp.create(held.title);
  form.setDescription(held.description);
  form.setConfirmationMessage(held.thanks);
  form.setCollectEmail(false);
  form.setProgressBar(true);
  form.setShuffleQuestions(false);
  form.setAllowResponseEdits(true);
  held.items.forEach((one) => add(form, one));
  Logger.log("For you: " + form.getEditUrl());
  Logger.log("For the rater: " + form.getPublishedUrl());
  return form;
}

function add(form, one) {
  const item = {
    page: () => form.addPageBreakItem(),
    section: () => form.addSectionHeaderItem(),
    choice: () => form.addMultipleChoiceItem(),
    choices: () => form.addCheckboxItem(),
    text: () => form.addParagraphTextItem(),
  }[one.type]();
  item.setTitle(one.title);
  if (one.help) item.setHelpText(one.help);
  if (one.required) item.setRequired(true);
  if (one.ends) {
    // Whoever does not agree leaves the form here.
    item.setChoices(
      one.options.map((option) =>
        item.createChoice(
          option,
          option === one.ends
            ? FormApp.PageNavigationType.SUBMIT
            : FormApp.PageNavigationType.CONTINUE,
        ),
      ),
    );
  } else if (one.options) {
    item.setChoiceValues(one.options);
  }
}
