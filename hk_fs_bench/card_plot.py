"""The card's plot: items by Part of the Code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hk_fs_bench.errors import UserError

# vl-convert brings this font, so that the picture is the same on every machine.
FONT = "Liberation Sans"
KINDS = {
    "MCQ, architectural": "#1f5a94",
    "MCQ, engineering": "#7fb0dd",
    "OEQ, architectural": "#b5651d",
    "OEQ, engineering": "#eebf8f",
}


def composition_png(composition: Sequence[Mapping[str, Any]]) -> bytes:
    """Stacked bars, one a Part; `composition` as the card's table has it. PNG, 2 pixels a point.

    Raises:
        UserError: altair or vl-convert is missing.
    """
    try:
        import altair as alt
        import vl_convert
    except ImportError:
        raise UserError("the card's plot needs altair: pip install 'hk-fs-bench[data]'") from None
    rows = []
    for line in composition:
        for subset in ("mcq", "oeq"):
            engineering = line[f"{subset}_engineering"]
            shares = {"architectural": line[subset] - engineering, "engineering": engineering}
            for domain, count in shares.items():
                kind = f"{subset.upper()}, {domain}"
                label = f"{line['part']}  {line['title']}"
                order = list(KINDS).index(kind)
                rows.append({"part": label, "kind": kind, "items": count, "order": order})
    chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(height=18)
        .encode(
            x=alt.X("items:Q", title="items", axis=alt.Axis(tickMinStep=1, grid=True)),
            y=alt.Y("part:N", title=None, axis=alt.Axis(labelLimit=400)),
            color=alt.Color(
                "kind:N",
                title=None,
                scale=alt.Scale(domain=list(KINDS), range=list(KINDS.values())),
                legend=alt.Legend(orient="bottom"),
            ),
            order=alt.Order("order:Q"),
        )
        .properties(width=440, height=190, background="white", padding=10)
        .configure(font=FONT)
        .configure_view(stroke=None)
    )
    png: bytes = vl_convert.vegalite_to_png(chart.to_json(), scale=2)
    return png
