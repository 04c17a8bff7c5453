"""The leaderboard: what is submitted, held against its own raw answers, ranked and published.

    strict_json   JSON from strangers: bounded, no doubled key, no number that is none
    safe_text     names, links and texts as data; and what must not be published
    entries       a submission's folder, its key and its slug
    rows          the raw answers: whole, each once, to the prompts of the edition
    history       what a branch may touch
    claims        what a submission says of its own scores, and what is recomputed
    recompute     many submissions scored at once
    checking      one submission held against all of these; many in processes
    kept          what was found clean, so that a second look is quick
    validating    the whole check: one line a fault
    submitting    a run → a submission
    outcomes, ranking, flags, studies, paper, building   submissions → leaderboard.json
    human_baseline  what practitioners know, beside the models and never ranked with them
    rescoring     what a new edition or parser changes
    exporting     leaderboard.json → other people's formats
    site          leaderboard.json → pages

Formats: docs/leaderboard.md and leaderboard/schema/.
"""
