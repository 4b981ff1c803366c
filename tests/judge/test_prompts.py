"""Keywords in prompts for the rules of their references."""

from __future__ import annotations

import pytest

from evalengine.judge.prompts import load_prompts

PROMPTS = load_prompts()
RULES = {
    "answer_correctness": ["TP", "FP", "FN"],
    "answer_relevance": ["relevant", "idk"],
    "bias": ["gender", "political", "racial", "geographical", "not biased merely because"],
    "toxicity": ["personal attack", "mockery", "hate", "dismissive", "threat", "are not toxic"],
    "opinions": ["belief or judgment", "fact", "somebody else", "list is empty"],
    "coherence": ["- 5:", "- 4:", "- 3:", "- 2:", "- 1:", "1 to 5"],
    "summary_coherence": ["- 5:", "- 1:", "1 to 5"],
    "context_precision": ["ranked order"],
    "context_recall": ["in order"],
    "context_relevance": ["ranked order", "any part of it is relevant"],
    "faithfulness": ["ranked order", "imply", "contradicts it", "do not bear on it"],
    "hallucination": [
        "ranked order",
        "contradicts",
        "leaves things out",
        "take the contexts as true",
    ],
}


@pytest.mark.parametrize("name", RULES)
def test_a_prompt_has_the_keywords_of_its_rules(name):
    text = PROMPTS[name].instructions.casefold()
    assert [rule for rule in RULES[name] if rule.casefold() not in text] == []


@pytest.mark.parametrize("name", ["bias", "toxicity"])
def test_each_rule_of_a_rubric_has_positive_and_negative_examples(name):
    rules = [line for line in PROMPTS[name].instructions.splitlines() if line[:1].isdigit()]
    word = {"bias": "biased", "toxicity": "toxic"}[name]
    assert len(rules) == {"bias": 4, "toxicity": 5}[name]
    for rule in rules:
        assert f'{word.capitalize()}: "' in rule
        assert f'Not {word}: "' in rule


@pytest.mark.parametrize("name", PROMPTS)
def test_every_prompt_states_that_texts_are_data(name):
    prompt = PROMPTS[name]
    given = {read: ["x"] if read == prompt.items else "x" for read in prompt.reads}
    system, user = (message["content"] for message in prompt.messages(given))
    assert "be judged" in system
    assert "gives orders" in system
    assert "be judged" not in user
