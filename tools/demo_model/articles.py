"""Writes an entity of a world as a short article: a first sentence, then its other facts in a random order."""
from world import Band, Book, City, Film, Firm, Person, School, Song


def article(random, entity):
    opening, facts = WRITERS[type(entity)](random, entity)
    random.shuffle(facts)
    return f"- Title: {entity.name}\n{opening} {' '.join(facts)}\n"


def with_article(word):
    return ("an " if word[0] in "AEIOUaeiou" else "a ") + word


def write_person(random, e):
    he, his = ("She", "Her") if e.sex == "f" else ("He", "His")
    child = "daughter" if e.sex == "f" else "son"
    work = f"{with_article(e.nationality)} {e.occupation}"
    opening = random.choice([
        f"{e.name} (born {e.born} in {e.city.name}) is {work}.",
        f"{e.name}, born in {e.born} in {e.city.name}, is {work}.",
        f"{e.name} is {work}. {he} was born in {e.born} in {e.city.name}.",
    ])
    facts = [
        random.choice([
            f"{he} is the {child} of {e.father} and {e.mother}.",
            f"{his} father is {e.father} and {his.lower()} mother is {e.mother}.",
        ]),
        random.choice([f"{he} is married to {e.spouse}.", f"{he} married {e.spouse}."]),
        f"{he} received the {e.prize} in {e.prize_year}.",
    ]
    if e.school:
        facts.append(
            random.choice([f"{he} studied at {e.school.name}.", f"{he} graduated from {e.school.name}."]))
    return opening, facts


def write_film(random, e):
    opening = random.choice([
        f"{e.name} is a {e.year} {e.nationality} {e.genre} film directed by {e.director.name} and starring {e.star}.",
        f"{e.name} is {with_article(e.nationality)} {e.genre} film released in {e.year}. "
        f"It was directed by {e.director.name} and stars {e.star}.",
    ])
    facts = [random.choice([f"The music was composed by {e.composer}.", f"{e.composer} composed the music."])]
    if e.book:
        facts.append(
            random.choice([
                f"It is based on the novel {e.book.name}.",
                f"The film is an adaptation of the novel {e.book.name}.",
            ]))
    return opening, facts


def write_book(random, e):
    opening = random.choice([
        f"{e.name} is {with_article(e.genre)} novel by {e.author.name}, published in {e.year}.",
        f"{e.name} is {with_article(e.genre)} novel written by {e.author.name}. It was published in {e.year}.",
    ])
    return opening, [f"The first edition was printed by {e.press}."]


def write_firm(random, e):
    opening = random.choice([
        f"{e.name} is {with_article(e.industry)} company founded by {e.founder.name} in {e.year}.",
        f"{e.name} is {with_article(e.industry)} company. It was founded in {e.year} by {e.founder.name}.",
    ])
    facts = [
        random.choice([
            f"Its headquarters are in {e.city.name}.",
            f"The company is headquartered in {e.city.name}.",
        ])
    ]
    return opening, facts


def write_city(random, e):
    opening = random.choice([
        f"{e.name} is a city in {e.country} on the river {e.river}.",
        f"{e.name} is a city in {e.country}. The river {e.river} flows through it.",
    ])
    facts = [
        random.choice([f"It has a population of {e.population}.", f"Its population is {e.population}."]),
        random.choice([f"The mayor is {e.mayor}.", f"Its mayor is {e.mayor}."]),
    ]
    return opening, facts


def write_band(random, e):
    opening = random.choice([
        f"{e.name} are {with_article(e.genre)} band formed in {e.city.name} in {e.year}.",
        f"{e.name} are {with_article(e.genre)} band. They formed in {e.year} in {e.city.name}.",
    ])
    facts = [
        random.choice([
            f"Their lead singer is {e.singer.name}.",
            f"{e.singer.name} is the lead singer.",
        ])
    ]
    return opening, facts


def write_song(random, e):
    opening = random.choice([
        f"{e.name} is a song by {e.band.name}, released in {e.year}.",
        f"{e.name} is a {e.year} song by {e.band.name}.",
    ])
    return opening, [random.choice([f"It was written by {e.writer}.", f"The lyrics were written by {e.writer}."])]


def write_school(random, e):
    opening = random.choice([
        f"{e.name} is a university in {e.city.name}, founded in {e.year}.",
        f"{e.name} was founded in {e.year} in {e.city.name}.",
    ])
    return opening, [random.choice([f"Its rector is {e.rector}.", f"The rector is {e.rector}."])]


WRITERS = {
    Person: write_person,
    Film: write_film,
    Book: write_book,
    Firm: write_firm,
    City: write_city,
    Band: write_band,
    Song: write_song,
    School: write_school,
}
