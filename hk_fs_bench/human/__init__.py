"""Human evaluation of open answers: from the assignment of raters to agreement.

    rubric      the levels, descriptors and scores of rubric.yaml, and what a judgement is worth
    study       the study folder: settings, questions, answers, assignment, the organiser's key
    candidates  the answers behind opaque ids: models', expert-written, known-bad, repeated
    assign      who rates what, drawn from a seed; batches and draw do the drawing
    workload    raters and hours that a study needs
    importing   returned files into a study: results of the page and the spreadsheet, surveys
    returns     what came back, kept in one form whatever the form was; withdrawal takes out
    ratings     ratings.jsonl and its siblings, rebuilt from the returns; publishing
    figures     of models; agreement, correlations and judge_figures stand beside it
    judge       a model rates with the same rubric
    report      report.html and report.json: report_data collects, report_tables and its parts show

Nothing here prints. docs/human.md describes the formats.
"""
