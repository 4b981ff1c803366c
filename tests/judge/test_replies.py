"""Parsing of replies: ratings, verdicts, lists, and replies that are refused."""

from __future__ import annotations

import json

import pytest
from judge.conftest import ROWS
from judge.server import Answer, serving

import evalengine as ee
from evalengine.judge.prompts import BadReply, load_prompts, parse

PROMPTS = load_prompts()

RATINGS = {
    "4": 4,
    "Score: 4 out of 5": 4,
    "**Rating: 3**": 3,
    "4/5": 4,
    "4.0.": 4,
    "2.5": 2,  # as in Valor
    "I say 4.": 4,
    "<think>1 of the {links} is weak</think> 4": 4,
    '{"reason": "2 of 3", "rating": 4}': 4,
    '{"rating": 4.0}': 4,
    '{"rating": "4"}': 4,
    'Here: {"rating": " 5 "}': 5,
}


@pytest.mark.parametrize("text", RATINGS)
def test_spellings_of_a_rating(text):
    (verdict,) = parse(text, PROMPTS["coherence"], {"text": "t"})
    assert verdict.word == str(RATINGS[text])


NO_RATINGS = [
    "On a scale from 1 to 5, this text is a 4.",
    "3 or 4",
    "4 of 7",
    '{"reason": "Sentence 2 does not follow from 1", "rating": 4,}',
    '{"reason": "Sentence 2 does not',
    '{"rating": "about 4"}',
    '{"rating": 4.5}',
    '{"rating": true}',
    '{"rating": null}',
    '{"reason": "4"}',
    "<think>I would say 3",
    "",
]


@pytest.mark.parametrize("text", NO_RATINGS)
def test_numbers_of_the_reason_are_no_rating(text):
    with pytest.raises(BadReply) as raised:
        parse(text, PROMPTS["coherence"], {"text": "t"})
    assert raised.value.kind == "malformed_reply"


@pytest.mark.parametrize(
    ("word", "parsed"),
    [("Yes", "Yes"), (" NO ", "NO"), (True, "yes"), (False, "no"), (1, "yes"), ("0", "no")],
)
def test_spellings_of_verdicts(word, parsed):
    """Capitals are kept, because dialects differ: Valor does not accept YES."""
    reply = json.dumps({"verdicts": [{"reason": "", "verdict": word}]})
    (verdict,) = parse(reply, PROMPTS["bias"], {"opinions": ["o"]})
    assert verdict.word == parsed


@pytest.mark.parametrize("word", [0, 1, "0", "1", True, False, "true", "no"])
def test_spellings_of_attributed(word):
    reply = json.dumps({"classifications": [{"statement": "s", "attributed": word}]})
    (verdict,) = parse(reply, PROMPTS["llm_context_recall"], {})
    assert verdict.word == ("yes" if word in (1, "1", "true") else "no")


OPINIONS = '{"opinions": ["a"]}'


@pytest.mark.parametrize(
    "text",
    [
        f"{OPINIONS}}}",
        f"{OPINIONS} as {{asked}} {{}}.",
        '["a"]',
        'Here they are: ```json\n["a"]\n```',
        f"[1] {OPINIONS}",
    ],
)
def test_text_around_the_reply_is_skipped(text):
    assert parse(text, PROMPTS["opinions"], {"text": "t"}) == ["a"]


@pytest.mark.parametrize(
    "text",
    [
        f'{OPINIONS} No: {{"opinions": []}}',
        '{"opinions": ["a"], "opinions": ["b"]}',
        '["a"] or ["b"]',
        "[1]",
    ],
)
def test_several_answers_are_refused(text):
    with pytest.raises(BadReply):
        parse(text, PROMPTS["opinions"], {"text": "t"})


@pytest.mark.parametrize("word", ["perhaps", "", None, 2, 1.5, ["yes"], "yes, no"])
def test_other_words_are_refused(word):
    reply = json.dumps({"verdicts": [{"reason": "", "verdict": word}]})
    with pytest.raises(BadReply) as raised:
        parse(reply, PROMPTS["bias"], {"opinions": ["o"]})
    assert raised.value.kind == "wrong_vocabulary"


def test_thoughts_with_braces_are_skipped():
    reply = json.dumps({"opinions": ["a"]})
    for text in (
        f'<think>{{"opinions": ["x"]}} or {{ so</think>\n{reply}',
        f"\n<think>\nno braces\n</think>```json\n{reply}\n```",
        reply,
    ):
        assert parse(text, PROMPTS["opinions"], {"text": "t"}) == ["a"]
    with pytest.raises(BadReply):  # a reply within thoughts does not count
        parse(f"<think>{reply}</think>", PROMPTS["opinions"], {"text": "t"})


def test_blank_and_repeated_items_are_removed():
    reply = json.dumps({"opinions": ["", "a", "a", " ", "b"]})
    assert parse(reply, PROMPTS["opinions"], {"text": "t"}) == ["a", "b"]


def test_a_hallucination_in_capitals_is_the_same_under_every_dialect(tmp_path):
    """A plain yes has the opposite meaning in deepeval, so the table has explicit words."""
    reply = json.dumps({"verdicts": [{"reason": "", "verdict": "YES"}]})
    with serving(lambda body, before: Answer(reply)) as server:
        done = ee.judge(
            ROWS.head(1), metrics="Hallucination", model="m", base_url=server.url,
            cache=str(tmp_path / "c"),
        )  # fmt: skip
    assert done.verdicts["verdict"].to_list() == ["contradicted"]
