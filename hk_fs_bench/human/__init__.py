"""Human evaluation of open answers: from the assignment of raters to agreement.

    rubric      the levels, descriptors and scores of rubric.yaml, and what a judgement is worth
    study       the study folder: settings, questions, answers, assignment, the organiser's key
    assign      who rates what, drawn from a seed
    workload    raters and hours that a study needs
    returns     what came back, kept in one form whatever the form was; withdrawal
    surveys     spreadsheets and survey exports as they really come
    ratings     ratings.jsonl and its siblings, rebuilt from the returns
    figures     of models; agreement, correlations and judge_figures stand beside it
    judge       a model rates with the same rubric
    report      report.html and report.json: report_data collects, report_tables and its parts show

Nothing here prints. docs/human.md describes the formats.
"""
