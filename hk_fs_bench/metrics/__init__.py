"""What a run's answers are worth: one module a family of metrics.

    mcq, breakdowns       accuracy, errors by their risk, by group
    text                  BLEU-4, METEOR, ROUGE-L, by pycocoevalcap
    bertscore             BERTScore, by bert_score
    citations             clause grounding: do the cited provisions exist, are they the item's
    keypoints             key points that a judge model finds in an answer

Nothing here prints or writes into a run. A metric that can't be had here raises `Unavailable`.
"""
