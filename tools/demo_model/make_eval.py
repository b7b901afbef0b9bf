"""Writes question-answering rows over synthetic documents, one JSON object a line.

Each context is written in three orders of its documents. Questions on facts keep their answers, questions on the order
of the documents get the answer of that order, so an engine that ignores the slots cannot score well.
"""
import argparse
import json
import random

from examples import example
from questions import ON_ORDER, Question

TITLE = "- Title: "


def split(document):
    """An article as {"title", "text"}."""
    head, text = document.split("\n", 1)
    return {"title": head[len(TITLE):], "text": text.rstrip("\n")}


def questions_on(names, rng):
    """One question of each kind on the order in which the documents stand."""
    a, b = rng.sample(range(len(names)), 2)
    return [
        Question("What is the title of the last document?", names[-1], ON_ORDER),
        Question("What is the title of the first document?", names[0], ON_ORDER),
        Question(f"Which document is listed first, {names[a]} or {names[b]}?", names[min(a, b)], ON_ORDER),
    ]


def rows_of(context, seed):
    """The rows of one context: three orders, each with up to four facts and one question on the order."""
    rng = random.Random(seed)
    texts, asked = example(seed, rng.choice([3, 5, 8, 8, 10, 12, 16, 20]), 8)
    documents = [split(text) for text in texts]
    facts = [question for question in asked if question.hops != ON_ORDER][:4]
    for number in range(3):
        order = documents[:]
        if number:
            rng.shuffle(order)
        on_order = questions_on([document["title"] for document in order], rng)
        for index, question in enumerate(facts + [on_order[number]]):
            yield {
                "id": f"c{context}-o{number}-q{index}",
                "documents": order,
                "question": question.text,
                "answers": [question.answer],
                "hops": question.hops,
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("output", help="file to write")
    parser.add_argument("--first-seed", type=int, default=910_000_000, help="seed of the first context")
    parser.add_argument("--contexts", type=int, default=60)
    options = parser.parse_args()
    with open(options.output, "w", encoding="utf-8") as file:
        for context in range(options.contexts):
            for row in rows_of(context, options.first_seed + context):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
