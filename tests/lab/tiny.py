"""A spec that runs in a second, for tests of what runs specs."""

from __future__ import annotations

from penstock.lab.spec import Spec, spec_of


def tiny(**changes: object) -> Spec:
    experiment = {
        "id": "q1",
        "data": {"source": "synthetic", "rows": 3000, "options": {"data_set": "DS4"}},
        "queries": [
            {"file": "synthetic-q1", "parameters": {"within": "60 seconds", "window": "60 seconds every 20 seconds"}}
        ],
        "strategies": ["random-event", "espice", "pspice"],
        "rates": [1.2, 2.0],
        "capacity": 500.0,
        **changes,
    }
    return spec_of(
        {
            "paper": "thesis",
            "title": "tiny",
            "about": "tiny",
            "experiments": [experiment],
            "figures": [{"id": "1", "experiment": "q1", "y": "strict_fn", "title": "tiny"}],
            "claims": []
            if "strategies" in changes
            else [
                {
                    "id": "tiny-1",
                    "figure": "1",
                    "section": "1",
                    "text": "eSPICE is better than chance.",
                    "judge": [
                        {
                            "kind": "order",
                            "experiment": "q1",
                            "measure": "strict_fn",
                            "less": ["espice"],
                            "more": ["random-event"],
                        }
                    ],
                }
            ],
        },
        "tiny",
    )
