"""hk_fs_bench.client and what it stands on: pace, budget, retries, deadlines, stopping."""

import asyncio
import email.utils
import gzip
import json
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hk_fs_bench import api_http, api_keys, api_models, client, providers
from hk_fs_bench.api_budget import Budget, Stopped
from hk_fs_bench.api_errors import asked_wait
from hk_fs_bench.api_pace import Pace
from hk_fs_bench.client import Account, Session
from hk_fs_bench.errors import UserError
from tests.fault_server import FaultServer, Reply, error, model_answer, ok

REGISTRY = api_models.load()
MODEL = REGISTRY.model("gpt-4.1")
PROVIDER = REGISTRY.provider(MODEL)
KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(client, "FIRST_WAIT_S", 0.01)


def body(text: str = "q") -> dict:
    return providers.payload(MODEL, text, wishes={}, answer_limit=512)


def ask(server, texts=("q",), *, pace=None, budget=None, most=0.0, price=None, **changes):
    """Ask all texts at once; answers or Stopped, in order, and the session."""

    async def run():
        account = Account(PROVIDER, server.url, KEY, pace or Pace(10, 100))
        model = MODEL.model_copy(update=changes)
        async with Session(model, account, budget, price) as session:
            calls = (session.ask(body(text), most=most) for text in texts)
            return await asyncio.gather(*calls, return_exceptions=True), session

    return asyncio.run(run())


def first_fails(bad: Reply):
    return lambda request: bad if request.nth == 1 else model_answer(request)


def test_an_answer_knows_its_call():
    with FaultServer(first_fails(error(500))) as server:
        (answer,), session = ask(server)
    assert (answer.status, answer.attempt, answer.in_flight) == ("ok", 2, 1)
    assert answer.reply.usage["output_tokens"] == 20
    assert session.answered == 1
    (first, second) = server.requests
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.body == second.body


def test_latency_is_the_answering_call_s_alone():
    slow = error(500)
    slow.delay = 0.6
    with FaultServer(first_fails(slow)) as server:
        (answer,), _ = ask(server)
    assert 0 < answer.latency_ms < 600


NOW = 1_800_000_000


@pytest.mark.parametrize(
    ("headers", "details", "seconds"),
    [
        ({}, None, None),
        ({"Retry-After": "7"}, None, 7),
        ({"retry-after": " 0.5 "}, None, 0.5),
        ({"Retry-After-Ms": "250", "Retry-After": "9"}, None, 0.25),
        ({"Retry-After": "-3"}, None, None),
        ({"Retry-After": "nan"}, None, None),
        ({"Retry-After": "soon"}, None, None),
        ({"Retry-After": "inf"}, [{"retryDelay": "3s"}], 3),
        ({}, [{"retryDelay": "12.5s"}], 12.5),
        ({}, [{"retryDelay": 5}, "x"], None),
        (
            {
                "Retry-After": email.utils.formatdate(NOW + 30, usegmt=True),
                "Date": email.utils.formatdate(NOW, usegmt=True),
            },
            None,
            30,
        ),
        (
            {
                "Retry-After": email.utils.formatdate(NOW + 30).removesuffix("-0000"),
                "Date": email.utils.formatdate(NOW, usegmt=True),
            },
            None,
            30,
        ),
        (
            {
                "Retry-After": email.utils.formatdate(NOW - 30, usegmt=True),
                "Date": email.utils.formatdate(NOW, usegmt=True),
            },
            None,
            0,
        ),
    ],
)
def test_waits_that_services_ask_for(headers, details, seconds):
    assert asked_wait(headers, {"details": details}) == seconds


def test_a_date_without_the_server_s_clock_is_held_against_ours():
    then = email.utils.formatdate(time.time() + 100, usegmt=True)
    assert 95 < asked_wait({"Retry-After": then}, {}) <= 100


@pytest.mark.parametrize("asked", ["seconds", "date"])
def test_the_asked_wait_is_kept(asked):
    times = []

    def respond(request):
        times.append(time.monotonic())
        if request.nth > 1:
            return model_answer(request)
        now = time.time()
        date = {
            "Retry-After": email.utils.formatdate(now + 1, usegmt=True),
            "Date": email.utils.formatdate(now, usegmt=True),
        }
        return error(429, {"Retry-After": "0.7"} if asked == "seconds" else date)

    with FaultServer(respond) as server:
        (answer,), _ = ask(server)
    assert answer.status == "ok"
    assert times[1] - times[0] >= (0.7 if asked == "seconds" else 1.0)


def test_a_cap_is_found_and_nothing_is_lost():
    with FaultServer(cap=5, latency=0.03) as server:
        answers, session = ask(server, [f"q{n}" for n in range(150)], pace=Pace(20, 100))
    assert [a.status for a in answers] == ["ok"] * 150
    assert server.peak == 5
    assert server.refused < 60
    assert 4 <= session.account.pace.limit <= 8


def test_the_ceiling_is_kept():
    with FaultServer(latency=0.02) as server:
        ask(server, [f"q{n}" for n in range(60)], pace=Pace(50, 4))
    assert server.peak <= 4


def test_a_rate_limit_rests_instead_of_asking_on():
    """Refusals whatever the number in flight: after a few the whole account waits as asked."""
    begun = time.monotonic()

    def respond(request):
        if time.monotonic() - begun < 1.0:
            return error(429, {"Retry-After": "1"})
        return model_answer(request)

    with FaultServer(respond) as server:
        answers, _ = ask(server, [f"q{n}" for n in range(300)], pace=Pace(10, 50))
    assert {a.status for a in answers} == {"ok"}
    assert len(server.requests) - 300 < 40


def test_pace_loses_no_slot_and_no_waiter():
    async def run(seed):
        chance = random.Random(seed)
        pace = Pace(3, 12)
        done = []

        async def call(n):
            for again in range(4):
                slot = await pace.slot(again=again > 0)
                assert slot.in_flight <= 12
                try:
                    await asyncio.sleep(chance.random() * 0.004)
                except asyncio.CancelledError:
                    pace.failed()
                    raise
                outcome = chance.random()
                if outcome < 0.1:
                    pace.refused(slot, 0.001)
                elif outcome < 0.2:
                    pace.failed()
                else:
                    pace.served(slot)
                    break
            done.append(n)

        tasks = [asyncio.create_task(call(n)) for n in range(120)]
        await asyncio.sleep(0.01)
        gone = chance.sample(range(120), 30)
        for n in gone:
            tasks[n].cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
        assert pace.in_flight == 0
        assert set(range(120)) - set(gone) <= set(done)

    for seed in range(5):
        asyncio.run(run(seed))


def test_a_passing_fault_is_tried_a_bounded_number_of_times(monkeypatch):
    monkeypatch.setattr(client, "TRIES", 3)

    def respond(request):
        return model_answer(request) if request.prompt == "good" else error(503)

    with FaultServer(respond) as server:
        answers, session = ask(server, ["good", "bad"], pace=Pace(1, 1))
    assert [a.status for a in answers] == ["ok", "infra_error"]
    assert answers[1].cause == "http_503"
    assert answers[1].attempt == 3
    assert session.stopped is None


def test_a_rate_limit_ends_with_the_deadline():
    def respond(request):
        if request.prompt == "good":
            return model_answer(request)
        return error(429, {"Retry-After": "0.2"})

    with FaultServer(respond) as server:
        answers, session = ask(server, ["good", "bad"], pace=Pace(1, 1), deadline_s=1.0)
    assert (answers[1].status, answers[1].cause) == ("infra_error", "http_429")
    assert 2 <= answers[1].attempt <= 6
    assert session.stopped is None


@pytest.mark.parametrize(
    ("bad", "cause"),
    [
        (Reply(then="hang"), "timeout"),
        (Reply(raw=b'{"choices"', headers={"Content-Length": "999"}, then="hang"), "timeout"),
        (Reply(raw=b"x" * 9, headers={"Content-Length": "999"}, then="reset"), "connection"),
        (Reply(raw=b"", headers={"Content-Length": "999"}, then="reset"), "connection"),
        (Reply(status="odd"), "connection"),
        (Reply(raw=b"{}", headers={"X-Long": "a" * 20_000}), "connection"),
        (Reply(raw=b"not packed", headers={"Content-Encoding": "gzip"}), "connection"),
        (Reply(raw=b" " * 20_000), "bad_body"),
        (Reply(raw=gzip.compress(b" " * 20_000), headers={"Content-Encoding": "gzip"}), "bad_body"),
        (Reply(raw=b'{"choices": "\xff"}'), "bad_body"),
    ],
)
def test_silence_cuts_and_what_is_no_reply_are_retried(bad, cause, monkeypatch):
    monkeypatch.setattr(client, "TRIES", 2)
    monkeypatch.setattr(api_http, "LONGEST_BODY", 10_000)

    def respond(request):
        return model_answer(request) if request.prompt == "good" else bad

    with FaultServer(respond) as server:
        answers, _ = ask(server, ["good", "bad"], pace=Pace(1, 1), timeout_s=0.3)
    assert (answers[1].status, answers[1].cause) == ("infra_error", cause)
    with FaultServer(first_fails(bad)) as server:
        (answer,), _ = ask(server, timeout_s=0.3)
    assert (answer.status, answer.attempt) == ("ok", 2)


def test_a_packed_reply_is_unpacked():
    packed = Reply(raw=gzip.compress(ok("B").bytes().partition(b"\r\n\r\n")[2]))
    packed.headers = {"Content-Encoding": "gzip"}
    with FaultServer(lambda request: packed) as server:
        (answer,), _ = ask(server)
    assert answer.reply.text == "B"


def test_a_drip_ends_with_the_time_out():
    class Drip(FaultServer):
        async def _answer(self, request, writer):
            for byte in ok("B").bytes():
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.05)
            return True

    begun = time.monotonic()
    with Drip() as server:
        (answer,), _ = ask(server, timeout_s=0.4)
        assert time.monotonic() - begun < 8
    assert (answer.status, answer.cause) == ("infra_error", "timeout")


@pytest.mark.parametrize("wait", ["0", "Fri, 31 Dec 1999 23:59:59 GMT"])
def test_a_service_that_asks_for_no_wait_is_not_beset(wait):
    with FaultServer(lambda request: error(429, {"Retry-After": wait})) as server:
        (answer,), _ = ask(server, deadline_s=2.0)
    assert answer.cause == "http_429"
    assert answer.attempt == len(server.requests) <= 12


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refused_request_among_answered_ones_fails_alone(status):
    def respond(request):
        return error(status, message="odd") if request.prompt == "bad" else model_answer(request)

    with FaultServer(respond) as server:
        answers, session = ask(server, ["good", "bad", "good too"], pace=Pace(1, 1))
    assert [a.status for a in answers] == ["ok", "infra_error", "ok"]
    assert (answers[1].cause, answers[1].attempt) == (f"http_{status}", 1)
    assert session.stopped is None


def test_a_limit_is_sent_under_the_name_that_the_server_takes():
    def respond(request):
        bad = "max_completion_tokens" in request.body
        return error(400, param="max_completion_tokens") if bad else model_answer(request)

    with FaultServer(respond) as server:
        answers, session = ask(server, [f"q{n}" for n in range(9)], pace=Pace(3, 3))
    assert [a.status for a in answers] == ["ok"] * 9
    assert len(server.requests) <= 9 + 3
    assert server.requests[-1].body["max_tokens"] == 512
    assert "sent as max_tokens" in session.dropped["max_completion_tokens"]


def test_a_field_that_was_refused_once_is_not_sent_by_calls_that_wait():
    def respond(request):
        return error(400, param="seed") if "seed" in request.body else model_answer(request)

    async def run(url):
        account = Account(PROVIDER, url, KEY, Pace(3, 3))
        async with Session(MODEL, account) as session:
            calls = (session.ask(body(f"q{n}") | {"seed": 1}, droppable={"seed"}) for n in range(9))
            return await asyncio.gather(*calls)

    with FaultServer(respond) as server:
        answers = asyncio.run(run(server.url))
    assert [a.status for a in answers] == ["ok"] * 9
    assert len(server.requests) <= 9 + 3


def test_a_permanent_error_stops_its_model_and_no_other():
    def respond(request):
        return error(404, code="model_not_found") if "bad" in request.prompt else ok("B")

    async def run(url):
        account = Account(PROVIDER, url, KEY, Pace(3, 3))
        async with Session(MODEL, account) as bad, Session(MODEL, account) as good:
            return await asyncio.gather(
                *(bad.ask(body(f"bad {n}")) for n in range(50)),
                *(good.ask(body(f"good {n}")) for n in range(50)),
                return_exceptions=True,
            )

    with FaultServer(respond) as server:
        answers = asyncio.run(run(server.url))
    assert all(isinstance(a, Stopped) and "http_404" in str(a) for a in answers[:50])
    assert [a.status for a in answers[50:]] == ["ok"] * 50
    assert sum("bad" in r.prompt for r in server.requests) <= 3


def test_an_unreachable_service_is_given_up_soon():
    with FaultServer() as server:
        pass
    answers, session = ask(server, [f"q{n}" for n in range(100)])
    assert "can't connect" in session.stopped
    assert sum(not isinstance(a, Stopped) for a in answers) <= 10


def test_stopping_lets_calls_in_flight_end():
    async def run(url):
        account = Account(PROVIDER, url, KEY, Pace(4, 4))
        async with Session(MODEL, account) as session:
            calls = [asyncio.create_task(session.ask(body(f"q{n}"))) for n in range(20)]
            await asyncio.sleep(0.3)
            session.stop("enough")
            return await asyncio.gather(*calls, return_exceptions=True), account.pace.in_flight

    with FaultServer(latency=0.6) as server:
        answers, left = asyncio.run(run(server.url))
    assert sum(not isinstance(a, Stopped) for a in answers) == 4
    assert len(server.requests) == 4
    assert left == 0


PRICE = api_models.Price(input=0, output=1e6 / 20)  # one USD a reply of 20 tokens


@pytest.mark.parametrize(
    ("limit", "most", "calls"), [(5, 1.0, 5), (5.5, 1.0, 5), (0, 1.0, 0), (5, 2.0, 4), (99, 1, 30)]
)
def test_money_stops_before_the_call_that_would_pass_it(limit, most, calls):
    budget = Budget(limit)
    with FaultServer(latency=0.01) as server:
        answers, session = ask(
            server, [f"q{n}" for n in range(30)], budget=budget, most=most, price=PRICE
        )
    assert len(server.requests) == calls
    assert budget.spent == pytest.approx(calls)
    assert budget.spent <= limit
    assert (session.stopped is None) == (calls == 30)
    assert sum(isinstance(a, Stopped) for a in answers) == 30 - calls


def test_unknown_usage_counts_as_the_most():
    budget = Budget(10)
    with FaultServer(lambda request: ok("B", usage={"x": 1})) as server:
        ask(server, ["q"], budget=budget, most=3, price=PRICE)
    assert budget.spent == 3


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 2), max_size=20), st.floats(0, 5))
def test_no_order_of_calls_passes_the_budget(costs, limit):
    async def call(budget, cost):
        try:
            async with budget.hold(2.0) as pay:
                await asyncio.sleep(0)
                pay(cost)
        except Stopped:
            return

    async def run():
        budget = Budget(limit)
        await asyncio.gather(*(call(budget, cost) for cost in costs))
        assert budget.spent <= limit or not costs
        assert budget.limit is None or not budget._held

    asyncio.run(run())


def test_nothing_of_another_vendor_is_sent_along(monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-private")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-private")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another-vendors-key")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with FaultServer() as server:
        ask(server)
    sent = str(server.requests[0].headers)
    assert "private" not in sent
    assert "another" not in sent


def test_keys_come_from_the_environment_or_a_dotenv(tmp_path, monkeypatch):
    monkeypatch.delenv(PROVIDER.key, raising=False)
    assert api_keys.find_key(PROVIDER, tmp_path) is None
    dotenv = tmp_path / ".env"
    dotenv.write_text(f'# keys\nexport {PROVIDER.key}="sk-from-file-${{x}}"\n', "utf-8")
    assert api_keys.find_key(PROVIDER, tmp_path) == "sk-from-file-${x}"
    monkeypatch.setenv(PROVIDER.key, " sk-from-env \n")
    assert api_keys.find_key(PROVIDER, tmp_path) == "sk-from-env"
    for bad in ("sk-“quoted”", "two words", "tab\tinside"):
        monkeypatch.setenv(PROVIDER.key, bad)
        with pytest.raises(UserError, match="copy it again"):
            api_keys.find_key(PROVIDER, tmp_path)
    monkeypatch.delenv(PROVIDER.key)
    dotenv.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="can't be read"):
        api_keys.find_key(PROVIDER, tmp_path)


def test_hiding_leaves_short_words_alone():
    assert api_keys.hide("a none sk-secret-1 b", ["none", "sk-secret-1"]) == "a none [key] b"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("cut off: sk-secret/0123", "cut off: [key]"),
        ("cut off: sk-secre", "cut off: [key]"),
        ("a prefix of all keys: sk-", "a prefix of all keys: sk-"),
        ("https://x.example/?key=sk-secret%2F0123456", "https://x.example/?key=[key]"),
        ("https://x.example/?key=sk-secret%2F0123", "https://x.example/?key=[key]"),
    ],
)
def test_hiding_finds_a_key_that_was_cut_or_quoted(text, hidden):
    assert api_keys.hide(text, ["sk-secret/0123456"]) == hidden


@pytest.mark.parametrize("length", range(250, 301, 7))
def test_a_message_is_a_printable_line_without_a_part_of_the_key(length):
    said = f"\x1b[31m\ud800\x00\n{'x' * length} {KEY} and on"

    def respond(request):
        return Reply(401, raw=json.dumps({"error": {"message": said}}).encode())

    with FaultServer(respond) as server:
        _, session = ask(server)
    shown = api_keys.hide(session.stopped, [KEY])
    assert shown.isprintable()
    assert KEY[:8] not in shown
