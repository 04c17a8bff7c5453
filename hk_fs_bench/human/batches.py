"""The batches of a study: raters for its questions, controls, repeats, orders, refusals."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

from hk_fs_bench.errors import UserError
from hk_fs_bench.human import workload
from hk_fs_bench.human.draw import Draw, deal_batches
from hk_fs_bench.human.study import Screen, Study, defaults
from hk_fs_bench.human.workload import ANY, role_of


@dataclass
class _Pool:
    """The opaque ids of one question, by what they are; `repeats` maps an id to its second."""

    models: list[str] = field(default_factory=list)
    expert: str | None = None
    known_bad: str | None = None
    repeats: dict[str, str] = field(default_factory=dict)


def draw_batches(
    study: Study,
    key: Mapping[str, Any],
    wanted: Mapping[str, int],
    held: Mapping[str, Collection[str]],
) -> list[str]:
    """Find raters for `wanted` (question → how many more) and append their batches.

    Args:
        held: rater → the questions that they have already.

    Returns:
        Notes: a study's first draw has an expert-written answer in every batch or is refused; a
        later one, of the questions that happened to be open, may lack some.

    Raises:
        UserError: too few raters, capacities or expert-written answers.
    """
    study.settings["draws"] += 1
    rng = Random(f"{study.settings['seed']}/draw/{study.settings['draws']}")
    pools = _pools(key)
    expert = {name for name, pool in pools.items() if pool.expert}
    team = {r.rater: r for r in study.raters.values() if not r.left}
    draw = Draw({name: r.capacity for name, r in team.items()}, held, rng)
    order = sorted(wanted)
    rng.shuffle(order)
    roles = {name: role_of(q.engineering_related) for name, q in study.questions.items()}
    # Questions that anybody may rate come last; those with an expert-written answer first, so
    # that every rater gets some of them.
    order.sort(key=lambda name: (roles[name] == ANY, name not in expert))
    short: Counter[str] = Counter()
    for name in order:
        may = [r.rater for r in team.values() if roles[name] in (r.role, ANY)]
        if lacking := draw.add(name, may, wanted[name]):
            short[roles[name]] += lacking
    if short:
        _refuse(study, short, roles, len(key["runs"]))
    needs_expert = study.settings["controls"]["expert"] is not None
    lacking_expert = []
    used = Counter[str]()
    for screen in study.assignment:
        used[screen.rater] = max(used[screen.rater], screen.batch)
    for rater, questions in draw.found.items():
        for batch in deal_batches(questions, expert, study.settings["batch_size"], rng):
            used[rater] += 1
            if needs_expert and not expert & set(batch):
                lacking_expert.append(rater)
            study.assignment += _screens(rater, used[rater], batch, pools, rng)
    if not lacking_expert:
        return []
    people = ", ".join(f"{r} ({n})" for r, n in sorted(Counter(lacking_expert).items()))
    lack = f"{len(lacking_expert)} batches have no question with an expert-written answer: {people}"
    if study.settings["draws"] == 1:
        raise UserError(
            f"{lack}; write answers to more questions of their role, or do without "
            "(--no-expert-answers)"
        )
    return [lack]


def _pools(key: Mapping[str, Any]) -> dict[str, _Pool]:
    pools: dict[str, _Pool] = defaultdict(_Pool)
    for name, about in key["candidates"].items():
        pool = pools[about["item_id"]]
        if about["repeat_of"]:
            pool.repeats[about["repeat_of"]] = name
        elif about["kind"] == "model":
            pool.models.append(name)
        elif about["kind"] == "expert":
            pool.expert = name
        else:
            pool.known_bad = name
    return pools


def _screens(
    rater: str, number: int, batch: Sequence[str], pools: Mapping[str, _Pool], rng: Random
) -> Iterable[Screen]:
    """A batch: its controls, the order of its candidates, and the repeat at its end."""
    shown = {name: list(pools[name].models) for name in batch}
    written = [name for name in batch if pools[name].expert]
    genuine = rng.choice(written) if written else None
    bad = rng.choice([name for name in batch if name != genuine] or batch)
    for name, extra in ((genuine, "expert"), (bad, "known_bad")):
        if name is not None:
            shown[name].append(cast("str", getattr(pools[name], extra)))
    for names in shown.values():
        rng.shuffle(names)
    found = [Screen(rater, number, n, q, shown[q]) for n, q in enumerate(batch, 1)]
    if len(batch) >= defaults()["shortest_with_repeat"]:
        again = rng.choice(batch[: max(1, len(batch) // 3)])
        second = pools[again].repeats[rng.choice(pools[again].models)]
        found.append(Screen(rater, number, len(batch) + 1, again, [second], repeat=True))
    return found


def _refuse(study: Study, short: Mapping[str, int], roles: Mapping[str, str], models: int) -> None:
    needs = workload.needs(
        Counter(roles.values()),
        models,
        study.raters.values(),
        study.settings["raters_per_question"],
    )
    first = study.settings["draws"] == 1
    how = ", or ask fewer --questions" if first else " to their file, and give it by --raters"
    details = [line for line in workload.lines(needs, True) if "MISSING" in line]
    lacking = ", ".join(f"{count} of {role}" for role, count in sorted(short.items()))
    raise UserError(
        f"the raters can't rate every question: question ratings without a rater: {lacking}; add "
        f"raters or capacity{how}",
        details,
    )
