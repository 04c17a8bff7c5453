"""BERTScore with a small real encoder: bounds, order and bert_score's own values; those published
for roberta-large where that model may be loaded."""

import json
import math

import pytest

from hk_fs_bench.metrics import bertscore, pair_cache
from hk_fs_bench.metrics.bertscore import BertScorer
from hk_fs_bench.metrics.common import Unavailable
from hk_fs_bench.metrics.encoder import Encoder
from hk_fs_bench.metrics.text import Pair
from tests.test_text_metrics import CASES, OTHER_METRICS, clean_pairs, pairs_of, usable

REFERENCE = "doors of exits shall open in the direction of exit"


@pytest.fixture(scope="module")
def encoder(small_encoder_folder) -> Encoder:
    return Encoder(str(small_encoder_folder), 6, device="cpu")


@pytest.fixture(scope="module")
def scorer(encoder) -> BertScorer:
    return BertScorer(encoder)


@pytest.mark.model
def test_as_bert_score_itself(scorer, small_encoder_folder):
    import bert_score

    pairs = clean_pairs(24)
    (found,) = scorer.score([pairs])
    own = bert_score.score(
        [pair.candidate for pair in pairs],
        [pair.references[0] for pair in pairs],
        model_type=str(small_encoder_folder),
        num_layers=6,
        device="cpu",
    )
    for values, wanted in zip(zip(*found.prf, strict=True), own, strict=True):
        assert values == pytest.approx(wanted.tolist(), abs=1e-5)
    f1 = own[2].mean().item()
    assert found.metric.pooled(range(24)).value == pytest.approx(f1, abs=1e-5)


@pytest.mark.model
def test_order_and_bounds(scorer):
    answers = [REFERENCE, "exit doors must open outwards", "bananas are yellow", "", None, " … "]
    (found,) = scorer.score([[Pair(answer, (REFERENCE,)) for answer in answers]])
    same, paraphrase, unrelated, *empties = found.metric.rows
    assert 1 >= round(same, 5) > paraphrase > unrelated > 0
    assert empties == [0, 0, 0]
    assert found.truncated == 0
    assert found.rescaled is None
    assert "local/model" in scorer.signature
    assert "/" not in scorer.column.replace("local/", "")


@pytest.mark.model
def test_each_row_as_alone_and_of_several_references_the_best(scorer):
    pairs = [
        *clean_pairs(6),
        Pair("lobby\u2028door\n\nclosed \ud83d", ("the lobby door is closed",)),
        Pair("the door", ("bananas are yellow", "a door")),
    ]
    (together,) = scorer.score([pairs])
    alone = [scorer.score([[pair]])[0].metric.rows[0] for pair in pairs]
    assert together.metric.rows == pytest.approx(alone, abs=1e-5)
    (best,) = scorer.score([[Pair("the door", ("a door",))]])
    assert together.metric.rows[-1] == pytest.approx(best.metric.rows[0], abs=1e-5)


@pytest.mark.model
def test_long_texts_are_counted(scorer, encoder):
    words = encoder.limit - 2
    texts = ["path " * words, "path " * (words + 1), "path " * 5000]
    (found,) = scorer.score([[Pair(text, ("a path",)) for text in texts]])
    assert found.truncated == 2
    assert all(0 < value < 1 for value in found.metric.rows)
    assert found.metric.rows[1] == pytest.approx(found.metric.rows[0], abs=1e-5)


@pytest.mark.model
def test_scored_pairs_come_from_the_cache(encoder, tmp_path, monkeypatch):
    path = tmp_path / "deep" / "cache.sqlite"
    pairs = clean_pairs(4)
    first = BertScorer(encoder, path).score([pairs, pairs[:2]])
    monkeypatch.setattr(BertScorer, "_computed", lambda self, pairs: pytest.fail("not cached"))
    again = BertScorer(encoder, path).score([pairs, pairs[:2]])
    assert [one.prf for one in again] == [one.prf for one in first]
    monkeypatch.undo()
    path.write_bytes(b"no database" * 100)
    spoiled = BertScorer(encoder, path).score([pairs])
    assert spoiled[0].metric.rows == pytest.approx(first[0].metric.rows, abs=1e-5)


@pytest.fixture(scope="module")
def scored_cases(scorer) -> dict[str, bertscore.BertScore]:
    found = scorer.score([usable(pairs_of(case)) for case in CASES])
    return {case["id"]: one for case, one in zip(CASES, found, strict=True)}


@pytest.mark.model
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(scored_cases, case):
    """What holds with any encoder; values are roberta-large's, below."""
    found, expected = scored_cases[case["id"]], case["expected"]
    assert all(math.isfinite(value) for prf in found.prf for value in prf)
    for name in ("F1_min", "BERTScore_F1_min", "each_row_BERT_or_ROUGE"):
        if name in expected:
            assert found.metric.rows == pytest.approx([1.0] * len(found.prf), abs=1e-3)
    if expected.get("BERTScore_F1") == 0.0 or expected.get("flag") == "missing":
        assert found.metric.rows == [0.0]
    if expected.get("truncation_reported"):
        assert found.truncated == 1


PUBLISHED = [c for c in CASES if "F1" in c["expected"] and c["context"]["metric"] in OTHER_METRICS]


@pytest.mark.live
@pytest.mark.parametrize("case", PUBLISHED, ids=lambda case: case["id"])
def test_published_values_of_roberta_large(case, monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    scorer = BertScorer(Encoder(bertscore.MODEL))
    (found,) = scorer.score([pairs_of(case)])
    wanted = case["expected"]["F1"]
    values = list(found.metric.rows)
    if case["context"]["metric"] == "BERTScore rescaled":
        floor = scorer.encoder.baseline
        values = [(value - floor) / (1 - floor) for value in values]
    wanted = wanted if isinstance(wanted, list) else [wanted]
    assert values == pytest.approx(wanted, abs=case["context"]["tol"])


@pytest.mark.model
def test_what_can_not_be_loaded_is_a_reason(small_encoder_folder, tmp_path):
    pair = Pair("a door", ("the door",))
    with pytest.raises(Unavailable, match="name one with --bertscore-layers"):
        Encoder(str(small_encoder_folder))
    with pytest.raises(Unavailable, match="has no layer 60"):
        BertScorer(Encoder(str(small_encoder_folder), 60)).score([[pair]])
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(Unavailable, match="can't be loaded"):
        BertScorer(Encoder(str(tmp_path), 3)).score([[pair]])
    with pytest.raises(Unavailable, match="download it once, or name another"):
        BertScorer(Encoder("no-such-org/no-such-model", 3)).score([[pair]])


def test_default_column_and_cache_place(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert pair_cache.default_path() == tmp_path / "hk-fs-bench" / "bertscore.sqlite"
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pair_cache.PairCache(blocked / "cache.sqlite", "e") as cache:
        cache.put({("a", "b"): (1.0, 1.0, 1.0)})
        assert cache.get([("a", "b")]) == {}


@pytest.mark.model
def test_the_papers_encoder_has_the_plain_column():
    scorer = BertScorer(Encoder(bertscore.MODEL))
    assert scorer.column == "bertscore_f1"
    assert scorer.encoder.layers == 17
    assert scorer.encoder.baseline == pytest.approx(0.8312, abs=1e-4)
