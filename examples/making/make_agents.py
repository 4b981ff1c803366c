"""Make the bundled example of agents: tool calls of two agents in 120 conversations.

    python examples/making/make_agents.py [FOLDER]

The expected calls look up, book and confirm a trip. The agent `quick` skips the check of dates more
often than `careful`. Both sometimes search twice, write cities in lower case or miss a price by
less than one percent. Seeded.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import polars as pl

CITIES = ["Bern", "Cork", "Graz", "Lyon", "Oslo", "Turin"]
AGENTS = {"quick": 0.35, "careful": 0.1}
"""Agent -> probability that it does not check the dates."""


def expected(chance: random.Random) -> list[dict[str, Any]]:
    """Return the expected calls of one conversation."""
    city, nights = chance.choice(CITIES), chance.randint(1, 5)
    price = round(chance.uniform(60, 240), 2)
    search = {"name": "search_hotels", "arguments": {"city": city, "nights": nights}}
    check = {"name": "check_dates", "arguments": {"nights": nights}}
    book = {"name": "book", "arguments": {"city": city, "price": price}}
    return [[search], [search, check, book], [check, book]][chance.randrange(3)]


def called(calls: list[dict[str, Any]], skips: float, chance: random.Random) -> list[Any]:
    """Return the calls that an agent made."""
    made: list[Any] = []
    for call in json.loads(json.dumps(calls)):
        if call["name"] == "check_dates" and chance.random() < skips:
            continue
        own = call["arguments"]
        if "city" in own and chance.random() < 0.15:
            own["city"] = own["city"].lower()
        if "price" in own and chance.random() < 0.2:
            own["price"] = round(own["price"] * 1.005, 2)
        made += [call] * (2 if call["name"] == "search_hotels" and chance.random() < 0.1 else 1)
    return made


def conversations(agent: str) -> pl.DataFrame:
    """Return calls of one agent; the expected ones are the same for both."""
    chance, own = random.Random(3), random.Random(agent)
    rows = []
    for i in range(120):
        calls = expected(chance)
        made = called(calls, AGENTS[agent], own)
        rows.append((f"c{i:03}", ("phone", "chat")[i % 2], made, calls))
    argument = pl.Struct({"city": pl.String, "nights": pl.Int64, "price": pl.Float64})
    lists = pl.List(pl.Struct({"name": pl.String, "arguments": argument}))
    schema = {"id": pl.String, "channel": pl.String, "tools_called": lists, "expected_tools": lists}
    return pl.DataFrame(rows, schema=schema, orient="row")


def main(folder: Path) -> None:
    """Write the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    for agent in AGENTS:
        conversations(agent).write_parquet(folder / f"{agent}.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "agents")
