"""Documents of one world and questions on them: what the model is trained and tested on."""
import argparse

import questions
from articles import article
from world import World


def example(seed, num_documents=8, num_questions=6):
    """(documents, questions): texts, and questions answerable from them, but for a few that say so."""
    world = World(seed, size=max(4, num_documents // 2))
    random, pool = world.random, world.entities()
    chosen, asked = choose(world, pool, num_documents, num_questions)
    rest = [entity for entity in pool if entity not in chosen]
    random.shuffle(rest)
    chosen += rest[:num_documents - len(chosen)]
    random.shuffle(chosen)
    documents = [article(random, entity) for entity in chosen]
    if random.random() < 0.6:
        names = [entity.name for entity in chosen]
        for _ in range(random.choice([1, 1, 2])):
            question = questions.on_order(random, names)
            if not is_asked(question, asked):
                asked.append(question)
    random.shuffle(asked)
    return documents, asked


def choose(world, pool, num_documents, num_questions):
    """Questions, and the entities whose articles they need, at most num_documents of them."""
    random = world.random
    chosen, asked = [], []
    for _ in range(60):
        if len(asked) == num_questions:
            break
        kind = random.random()
        if kind < 0.40:
            question = questions.one_hop(random, random.choice(pool))
        elif kind < 0.86:
            question = questions.two_hop(random, random.choice(pool))
        elif kind < 0.92:
            question = questions.same_nationality(random, world.people)
        else:
            entity = random.choice(pool)
            # Unanswerable only when no room is left for the article that would answer it.
            if entity not in chosen and len(chosen) == num_documents:
                text = questions.one_hop(random, entity).text
                asked.append(questions.Question(text, questions.UNKNOWN, questions.UNANSWERABLE))
            continue
        if question is None or is_asked(question, asked):
            continue
        missing = [entity for entity in question.needs if entity not in chosen]
        if len(chosen) + len(missing) <= num_documents:
            chosen += missing
            asked.append(question)
    return chosen, asked


def is_asked(question, asked):
    return any(question.text == other.text for other in asked)


def main():
    parser = argparse.ArgumentParser(description="Prints the documents and questions of a seed.")
    parser.add_argument("seed", type=int, nargs="?", default=7)
    documents, asked = example(parser.parse_args().seed)
    print("".join(documents))
    for question in asked:
        print(question.text, question.answer, f"({question.hops})")


if __name__ == "__main__":
    main()
