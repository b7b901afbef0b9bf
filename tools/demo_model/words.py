"""Word lists of the synthetic world. Their order matters: a seed picks by position."""

SYLLABLES_FIRST = """
    ba be bo bra bri cal car che cor da del dor dra el fa fen fio gal gar gre hal har hel ina jor ka kel kor
    la len lio lor ma mar mel mi mor na nel nor o pel per pra ra rel ri ros sa sel ser sol sta ta tel tor tri
    u val ver vi vor wel wen yor za zel
""".split()

SYLLABLES_NEXT = """
    ba bel bin da den din do dra fa fi ga go ka ki la len li lo ma mi mo na ne ni no ra re ri ro sa se si so
    ta te ti to va ve vi vo za zi
""".split()

ENDINGS_FEMALE = """
    a ia ina elle ette anne is ora una ya
""".split()

ENDINGS_MALE = """
    an ar el en er ian in o on or us ek
""".split()

ENDINGS_LAST_NAME = """
    berg dahl er ford ham heim ic ides ini kov land ley man mont off ova ski sson stein ton vale well wick
    wood worth
""".split()

ENDINGS_CITY = """
    burg bury by dale field ford ham haven holm mouth port stad ton vik ville wick
""".split()

ADJECTIVES = """
    Amber Ancient Bitter Blue Broken Burning Crimson Distant Empty Endless Fallen Final Forgotten Frozen
    Gentle Gilded Golden Green Hidden Hollow Iron Ivory Last Little Lonely Lost Midnight Northern Pale Paper
    Quiet Red Restless Sacred Scarlet Second Secret Silent Silver Sleeping Southern Stolen Summer Velvet
    Wandering White Wild Winter Wooden
""".split()

NOUNS = """
    Anchor Arrow Bell Bridge Candle Canyon Castle Circus Clock Compass Crown Desert Door Dream Echo Empire
    Falcon Feather Fire Forest Fortune Garden Gate Ghost Harbor Harvest Horizon Hour House Island Journey Key
    Kingdom Lantern Letter Lighthouse Mirror Moon Mountain Ocean Orchard Palace Piano Promise Rain River Road
    Rose Sea Shadow Ship Shore Sky Song Star Storm Street Sun Thief Tiger Tower Train Valley Village Violin
    Voyage Wall Whisper Window Wolf
""".split()

# Country and the adjective of its people.
COUNTRIES = {
    "France": "French", "Germany": "German", "Italy": "Italian", "Spain": "Spanish", "Poland": "Polish",
    "Norway": "Norwegian", "Sweden": "Swedish", "Denmark": "Danish", "Finland": "Finnish",
    "Portugal": "Portuguese", "Greece": "Greek", "Turkey": "Turkish", "India": "Indian", "Japan": "Japanese",
    "China": "Chinese", "Brazil": "Brazilian", "Mexico": "Mexican", "Canada": "Canadian",
    "Argentina": "Argentine", "Chile": "Chilean", "Egypt": "Egyptian", "Kenya": "Kenyan",
    "Nigeria": "Nigerian", "Australia": "Australian", "Ireland": "Irish", "Austria": "Austrian",
    "Hungary": "Hungarian", "Romania": "Romanian", "Iceland": "Icelandic", "Belgium": "Belgian",
}

OCCUPATIONS = [
    "film director", "novelist", "actor", "singer", "composer", "painter", "architect", "engineer",
    "journalist", "historian",
]
FILM_GENRES = [
    "drama", "comedy", "thriller", "horror", "war", "romance", "science fiction", "western", "crime",
    "adventure",
]
BOOK_GENRES = ["historical", "mystery", "fantasy", "science fiction", "romance", "crime", "gothic", "adventure"]
MUSIC_GENRES = ["rock", "folk", "jazz", "pop", "metal", "electronic", "blues", "punk"]
INDUSTRIES = [
    "software", "shipping", "mining", "textile", "publishing", "film production", "steel", "railway",
    "pharmaceutical", "brewing",
]
PRIZES = ["Prize", "Medal", "Award", "Trophy"]
FIRM_KINDS = [" Industries", " Works", " Group", " Company", " Systems"]
UNIVERSITY_ENDINGS = ["n", "r", "l"]
