"""Questions on the entities of a world, each with its answer and the articles that one has to read for it."""
from dataclasses import dataclass, field

from world import Band, Book, City, Film, Firm, Person, School, Song

# What `hops` says of a question besides the number of facts to join.
UNANSWERABLE = 0
ON_ORDER = 9

UNKNOWN = "The documents do not say."


@dataclass
class Question:
    text: str
    answer: str
    hops: int
    needs: list = field(default_factory=list)  # entities whose articles hold the answer


def one_hop(random, e):
    """A question that names the entity and asks for one of its facts."""
    text, answer = random.choice(ONE_HOP[type(e)](e))
    return Question(text, answer, 1, [e])


def two_hop(random, e):
    """A question on an entity that is named only through another one; None when the entity leads to no other."""
    links = LINKS.get(type(e), lambda _: [])(e)
    if not links:
        return None
    phrase, target = random.choice(links)
    text, answer = random.choice(TWO_HOP.get(type(target), founded_facts)(phrase, target))
    return Question(text, answer, 2, [e, target])


def same_nationality(random, people):
    a, b = random.sample(people, 2)
    answer = "yes" if a.nationality == b.nationality else "no"
    return Question(f"Do {a.name} and {b.name} have the same nationality?", answer, 2, [a, b])


def on_order(random, names):
    """A question on the order of the documents: its answer changes with the slots."""
    kind = random.random()
    if kind < 0.25:
        return Question("What is the title of the last document?", names[-1], ON_ORDER)
    if kind < 0.5:
        return Question("What is the title of the first document?", names[0], ON_ORDER)
    a, b = random.sample(range(len(names)), 2)
    first = random.random() < 0.5
    answer = names[min(a, b) if first else max(a, b)]
    which = "first" if first else "last"
    return Question(f"Which document is listed {which}, {names[a]} or {names[b]}?", answer, ON_ORDER)


# (question, answer) pairs that name the entity. Questions that stand twice are asked twice as often.


def person_facts(e):
    born = (f"When was {e.name} born?", e.born)
    occupation = (f"What is the occupation of {e.name}?", e.occupation)
    facts = [
        born,
        (f"Where was {e.name} born?", e.city.name),
        occupation,
        (f"What is the nationality of {e.name}?", e.nationality),
        (f"Who is the father of {e.name}?", e.father),
        (f"Who is the mother of {e.name}?", e.mother),
        (f"Who is the spouse of {e.name}?", e.spouse),
        (f"Which award did {e.name} receive?", e.prize),
        (f"In which year did {e.name} receive the {e.prize}?", str(e.prize_year)),
        born,
        occupation,
    ]
    if e.school:
        facts.append((f"Where did {e.name} study?", e.school.name))
    return facts


def film_facts(e):
    facts = [
        (f"Who directed the film {e.name}?", e.director.name),
        (f"Who is the director of {e.name}?", e.director.name),
        (f"Who starred in the film {e.name}?", e.star),
        (f"When was the film {e.name} released?", str(e.year)),
        (f"Who composed the music of the film {e.name}?", e.composer),
        (f"What is the genre of the film {e.name}?", e.genre),
    ]
    if e.book:
        facts.append((f"On which novel is the film {e.name} based?", e.book.name))
    return facts


def book_facts(e):
    return [
        (f"Who wrote the novel {e.name}?", e.author.name),
        (f"Who is the author of {e.name}?", e.author.name),
        (f"When was the novel {e.name} published?", str(e.year)),
        (f"Who printed the first edition of {e.name}?", e.press),
    ]


def firm_facts(e):
    return [
        (f"Who founded {e.name}?", e.founder.name),
        (f"When was {e.name} founded?", str(e.year)),
        (f"Where is {e.name} headquartered?", e.city.name),
        (f"What is the industry of {e.name}?", e.industry),
    ]


def city_facts(e):
    return city_facts_through(e.name, e)


def band_facts(e):
    return [
        (f"Where were {e.name} formed?", e.city.name),
        (f"When were {e.name} formed?", str(e.year)),
        (f"Who is the lead singer of {e.name}?", e.singer.name),
        (f"What genre of music do {e.name} play?", e.genre),
    ]


def song_facts(e):
    return [
        (f"Which band released the song {e.name}?", e.band.name),
        (f"Who wrote the song {e.name}?", e.writer),
        (f"When was the song {e.name} released?", str(e.year)),
    ]


def school_facts(e):
    return [
        (f"Where is {e.name} located?", e.city.name),
        (f"When was {e.name} founded?", str(e.year)),
        (f"Who is the rector of {e.name}?", e.rector),
    ]


ONE_HOP = {
    Person: person_facts,
    Film: film_facts,
    Book: book_facts,
    Firm: firm_facts,
    City: city_facts,
    Band: band_facts,
    Song: song_facts,
    School: school_facts,
}


# (phrase that names another entity through this one, that entity).


def film_links(e):
    links = [(f"the director of the film {e.name}", e.director)]
    if e.book:
        links.append((f"the novel on which the film {e.name} is based", e.book))
    return links


def book_links(e):
    return [(f"the author of the novel {e.name}", e.author)]


def firm_links(e):
    return [
        (f"the founder of {e.name}", e.founder),
        (f"the city where {e.name} is headquartered", e.city),
    ]


def person_links(e):
    links = [(f"the city where {e.name} was born", e.city)]
    if e.school:
        links.append((f"the university where {e.name} studied", e.school))
    return links


def band_links(e):
    return [
        (f"the city where {e.name} were formed", e.city),
        (f"the lead singer of {e.name}", e.singer),
    ]


def song_links(e):
    return [(f"the band that released the song {e.name}", e.band)]


def school_links(e):
    return [(f"the city where {e.name} is located", e.city)]


LINKS = {
    Film: film_links,
    Book: book_links,
    Firm: firm_links,
    Person: person_links,
    Band: band_links,
    Song: song_links,
    School: school_links,
}


# (question, answer) pairs on an entity that a phrase stands for.


def person_facts_through(phrase, e):
    facts = [
        (f"When was {phrase} born?", e.born),
        (f"Where was {phrase} born?", e.city.name),
        (f"Who is the father of {phrase}?", e.father),
        (f"Who is the mother of {phrase}?", e.mother),
        (f"Who is the spouse of {phrase}?", e.spouse),
        (f"Which award did {phrase} receive?", e.prize),
        (f"What is the nationality of {phrase}?", e.nationality),
    ]
    if e.school:
        facts.append((f"Where did {phrase} study?", e.school.name))
    return facts


def city_facts_through(phrase, e):
    return [
        (f"In which country is {phrase}?", e.country),
        (f"Which river flows through {phrase}?", e.river),
        (f"What is the population of {phrase}?", e.population),
        (f"Who is the mayor of {phrase}?", e.mayor),
    ]


def book_facts_through(phrase, e):
    return [
        (f"Who wrote {phrase}?", e.author.name),
        (f"When was {phrase} published?", str(e.year)),
    ]


def band_facts_through(phrase, e):
    return [
        (f"Where was {phrase} formed?", e.city.name),
        (f"Who is the lead singer of {phrase}?", e.singer.name),
    ]


def founded_facts(phrase, e):
    return [
        (f"When was {phrase} founded?", str(e.year)),
        (f"Who is the rector of {phrase}?", e.rector),
    ]


TWO_HOP = {
    Person: person_facts_through,
    City: city_facts_through,
    Book: book_facts_through,
    Band: band_facts_through,
}
