"""A small random world of linked entities. The same seed gives the same world: the order of the draws is part of it."""
import random
from dataclasses import dataclass

import words


@dataclass(eq=False)
class City:
    name: str
    country: str
    river: str
    population: str
    mayor: str = ""


@dataclass(eq=False)
class School:
    name: str
    city: City
    year: int
    rector: str


@dataclass(eq=False)
class Person:
    sex: str  # "f" or "m"
    name: str
    born: str
    city: City
    occupation: str
    nationality: str
    father: str
    mother: str
    spouse: str
    prize: str
    prize_year: int
    school: School | None = None


@dataclass(eq=False)
class Book:
    name: str
    author: Person
    year: int
    genre: str
    press: str


@dataclass(eq=False)
class Film:
    name: str
    director: Person
    year: int
    genre: str
    star: str
    nationality: str
    book: Book | None
    composer: str


@dataclass(eq=False)
class Firm:
    name: str
    founder: Person
    year: int
    city: City
    industry: str


@dataclass(eq=False)
class Band:
    name: str
    city: City
    year: int
    genre: str
    singer: Person


@dataclass(eq=False)
class Song:
    name: str
    band: Band
    year: int
    writer: str


class World:
    """Entities with names that are unique within the world. `size` is the number of people."""

    def __init__(self, seed, size=6):
        self.random = random.Random(seed)
        self.used_names = set()
        self.cities = [self._city() for _ in range(max(2, size // 2 + 1))]
        self.people = [self._person() for _ in range(size)]
        self.books = [self._book() for _ in range(max(1, size // 3))]
        self.films = [self._film() for _ in range(max(2, size // 2))]
        self.firms = [self._firm() for _ in range(max(1, size // 3))]
        self.bands = [self._band() for _ in range(max(1, size // 3))]
        self.songs = [self._song() for _ in range(max(1, size // 3))]
        self.schools = [self._school() for _ in range(max(1, size // 4))]
        for person in self.people:
            if self.random.random() < 0.5:
                person.school = self.random.choice(self.schools)
        for city in self.cities:
            city.mayor = self._full_name(self._sex())

    def entities(self):
        return (self.people + self.books + self.films + self.firms + self.bands + self.songs + self.schools +
                self.cities)

    # Names.

    def _unique(self, make):
        while True:
            name = make()
            if name not in self.used_names:
                self.used_names.add(name)
                return name

    def _stem(self, syllables=None):
        syllables = syllables or self.random.choice([1, 1, 2])
        first = self.random.choice(words.SYLLABLES_FIRST)
        return first + "".join(self.random.choice(words.SYLLABLES_NEXT) for _ in range(syllables - 1))

    def _first_name(self, sex):
        endings = words.ENDINGS_FEMALE if sex == "f" else words.ENDINGS_MALE
        return (self._stem() + self.random.choice(endings)).capitalize()

    def _last_name(self):
        return (self._stem() + self.random.choice(words.ENDINGS_LAST_NAME)).capitalize()

    def _full_name(self, sex):
        return self._unique(lambda: self._first_name(sex) + " " + self._last_name())

    def _capitalized_stem(self):
        return self._stem(2).capitalize()

    def _sex(self):
        return self.random.choice("fm")

    def _draw_title(self):
        kind = self.random.random()
        if kind < 0.45:
            return f"The {self._adjective()} {self._noun()}"
        if kind < 0.6:
            return f"{self._noun()} of the {self._noun()}"
        if kind < 0.75:
            return f"The {self._noun()} and the {self._noun()}"
        if kind < 0.9:
            return f"{self._adjective()} {self._noun()}"
        return f"{self._capitalized_stem()}'s {self._noun()}"

    def _title(self):
        return self._unique(self._draw_title)

    def _adjective(self):
        return self.random.choice(words.ADJECTIVES)

    def _noun(self):
        return self.random.choice(words.NOUNS)

    def _country(self):
        return self.random.choice(list(words.COUNTRIES))

    # Entities. Keyword arguments are evaluated from left to right, so their order is the order of the draws.

    def _city(self):
        return City(
            name=self._unique(lambda: (self._stem() + self.random.choice(words.ENDINGS_CITY)).capitalize()),
            country=self._country(),
            river=self._unique(self._capitalized_stem),
            population=f"{self.random.randint(11, 980)},{self.random.randint(0, 999):03d}",
        )

    def _person(self):
        sex = self._sex()
        city = self.random.choice(self.cities)
        return Person(
            sex=sex,
            name=self._full_name(sex),
            born=str(self.random.randint(1850, 1995)),
            city=city,
            occupation=self.random.choice(words.OCCUPATIONS),
            nationality=words.COUNTRIES[city.country],
            father=self._full_name("m"),
            mother=self._full_name("f"),
            spouse=self._full_name("m" if sex == "f" else "f"),
            prize=f"{self._unique(self._capitalized_stem)} {self.random.choice(words.PRIZES)}",
            prize_year=self.random.randint(1900, 2020),
        )

    def _book(self):
        return Book(
            name=self._title(),
            author=self.random.choice(self.people),
            year=self.random.randint(1880, 2015),
            genre=self.random.choice(words.BOOK_GENRES),
            press=self._unique(lambda: self._last_name() + " Press"),
        )

    def _film(self):
        director = self.random.choice(self.people)
        return Film(
            name=self._title(),
            director=director,
            year=self.random.randint(1920, 2022),
            genre=self.random.choice(words.FILM_GENRES),
            star=self._full_name(self._sex()),
            nationality=words.COUNTRIES[self._country()],
            book=self.random.choice(self.books) if self.random.random() < 0.4 else None,
            composer=self._full_name(self._sex()),
        )

    def _firm(self):
        return Firm(
            name=self._unique(lambda: self._last_name() + self.random.choice(words.FIRM_KINDS)),
            founder=self.random.choice(self.people),
            year=self.random.randint(1850, 2015),
            city=self.random.choice(self.cities),
            industry=self.random.choice(words.INDUSTRIES),
        )

    def _band(self):
        return Band(
            name=self._unique(lambda: f"The {self._adjective()} {self._noun()}s"),
            city=self.random.choice(self.cities),
            year=self.random.randint(1955, 2018),
            genre=self.random.choice(words.MUSIC_GENRES),
            singer=self.random.choice(self.people),
        )

    def _song(self):
        return Song(
            name=self._title(),
            band=self.random.choice(self.bands),
            year=self.random.randint(1956, 2022),
            writer=self._full_name(self._sex()),
        )

    def _school(self):
        return School(
            name=self._unique(self._university),
            city=self.random.choice(self.cities),
            year=self.random.randint(1500, 1980),
            rector=self._full_name(self._sex()),
        )

    def _university(self):
        return (self._stem(2) + self.random.choice(words.UNIVERSITY_ENDINGS)).capitalize() + " University"
