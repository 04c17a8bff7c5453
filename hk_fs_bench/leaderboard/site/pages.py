"""The pages of the site, one after the other: file name and text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from hk_fs_bench.errors import UserError
from hk_fs_bench.items import Dataset
from hk_fs_bench.leaderboard.site import Answers, charts, entry_page, question_page, shown
from hk_fs_bench.leaderboard.site.board import Board, Outcome, Row, page_of
from hk_fs_bench.leaderboard.site.columns import settings
from hk_fs_bench.schema import MCQItem


@cache
def environment() -> Environment:
    """Jinja2 with everything escaped, whatever a template is called."""
    made = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(
        percent=shown.percent, number=shown.number, span=shown.span, page_of=page_of
    )
    return made


def render(
    leaderboard: Mapping[str, Any],
    dataset: Dataset,
    answers: Answers | None,
    part: int = 0,
    parts: int = 1,
) -> Iterator[tuple[str, str]]:
    """(file name, HTML) of every page, or of one part of them."""
    for make in islice(_makers(leaderboard, dataset, answers), part, None, parts):
        yield make()


def _makers(
    leaderboard: Mapping[str, Any], dataset: Dataset, answers: Answers | None
) -> Iterator[Callable[[], tuple[str, str]]]:
    """What makes each page, in the order of the pages."""
    board = Board(leaderboard, dataset)
    held = leaderboard["dataset"]
    families = leaderboard["families"]
    common = {
        "rows": Rows(board.words),
        "words": board.words,
        "board": board,
        "edition": f"Questions {held['version']}, scorer {leaderboard['software']['hk_fs_bench']}.",
        "up": "",
    }

    def page(name: str, template: str, **own: Any) -> tuple[str, str]:
        return name, environment().get_template(template).render(
            **{"here": name, "canary": None} | common | own
        )

    shows_items = {"canary": held["canary"] or "no canary", "up": "../"}

    def index() -> tuple[str, str]:
        return page(
            "index.html",
            "index.html.j2",
            families=board.words["drafters"].format(
                ", ".join(families["drafters"]) or "not recorded",
                ", ".join(families["reviewers"]) or "nobody yet",
            ),
            views=settings("columns")["views"],
            filters=list(_filters(board)),
            baseline=leaderboard["human_baseline"],
            paper=leaderboard["paper"],
        )

    def plots() -> tuple[str, str]:
        return page("plots.html", "plots.html.j2", **charts.context(board))

    def questions() -> tuple[str, str]:
        return page(
            "questions.html",
            "questions.html.j2",
            questions=question_page.listing(board),
            tasks=[board.words["short_tasks"][task] for task in board.choice_tasks],
            **shows_items | {"up": ""},
        )

    def entry(slug: str, row: Row) -> tuple[str, str]:
        texts = {} if answers is None else answers(slug)
        own = entry_page.context(board, row, texts)
        return page(f"entries/{slug}.html", "entry.html.j2", **own, **shows_items)

    def question(name: str) -> tuple[str, str]:
        own = question_page.context(board, name)
        return page(f"questions/{page_of(name)}.html", "question.html.j2", **own, **shows_items)

    yield from (index, plots, questions)
    for slug, row in board.rows.items():
        if not shown.is_plain(slug):
            raise UserError(f"the board has an entry with the slug {slug[:60]!r}; build it again")
        yield partial(entry, slug, row)
    for name in (*board.questions(open_ones=False), *board.questions(open_ones=True)):
        yield partial(question, name)


class Rows:
    """Rows of long tables, each made once: 500 questions times 1,000 entries repeat themselves."""

    def __init__(self, words: Mapping[str, Any]) -> None:
        self._words = words
        self._macros = environment().get_template("_rows.html.j2").module
        self._made: dict[tuple[Any, ...], Any] = {}

    def _row(self, macro: str, key: str, of: object, outcomes: Sequence[Outcome]) -> Any:
        name = (macro, key, outcomes)
        if name not in self._made:
            self._made[name] = getattr(self._macros, macro)(of, outcomes, self._words)
        return self._made[name]

    def entry(self, row: Row, outcomes: Sequence[Outcome]) -> Any:
        """An entry on the page of a question."""
        return self._row("entry", row.slug, row, outcomes)

    def question(self, item: MCQItem, outcomes: Sequence[Outcome]) -> Any:
        """A question on the page of an entry."""
        return self._row("question", item.id, item, outcomes)

    def name(self, row: Row) -> Any:
        """The heading of an entry's row."""
        return self._row("name", row.slug, row, ())


def _filters(board: Board) -> Iterator[dict[str, Any]]:
    """The filters in whose values the rows differ."""
    for own in settings("columns")["filters"]:
        values = sorted({v for row in board.ordered for v in row.filters.get(own["name"], ())})
        if len(values) > 1:
            yield {"name": own["name"], "label": own["label"], "values": values}
