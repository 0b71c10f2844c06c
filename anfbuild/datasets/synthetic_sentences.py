"""Kind `synthetic_sentences`: passages that each say one thing of one place, and to each a question that it answers.

Sample 2n is a passage, sample 2n + 1 its question. Many passages speak of the same kind of place or of the same thing,
so that neither the words of the one nor of the other are enough. No place, and so no sentence, is in both splits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anfbuild.datasets.painting import below, generator, pick
from anfbuild.datasets.samples import TEXT, Entry, write_index
from anfbuild.errors import StepError

_PLACES = {
    "calibration": ("bakery", "museum", "swimming pool", "garage", "library", "hotel", "pharmacy", "cinema"),
    "evaluation": ("bookshop", "gallery", "gym", "hardware store", "town hall", "guest house", "dentist", "theatre"),
}
_STREETS = {
    "calibration": ("Maple Street", "Station Road", "Castle Square", "River Lane", "Church Hill", "Mill Street"),
    "evaluation": ("Harbour Street", "Park Avenue", "Market Square", "Forest Road", "Bridge Lane", "Garden Row"),
}
_FACTS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (
        ("The {place} opens at {hour} in the morning and closes at {late} in the evening.",),
        ("When can I visit the {place}?", "What are the hours of the {place}?"),
    ),
    (
        ("On {day}s the {place} stays shut.", "There is nobody at the {place} on {day}s."),
        ("Which day of the week is the {place} closed?", "Is there a day off for the {place}?"),
    ),
    (
        ("Cars can be left in the yard behind the {place}, {number} of them.",),
        ("Where do I park near the {place}?", "Is there parking at the {place}?"),
    ),
    (
        ("Bus {number} stops right in front of the {place}.", "The {place} is two minutes from tram {number}."),
        ("How do I get to the {place} by public transport?", "Which line takes me to the {place}?"),
    ),
    (
        ("Call {number}{number} to talk to somebody at the {place}.",),
        ("What is the phone number of the {place}?", "How can I ring the {place}?"),
    ),
    (
        ("Dogs are welcome at the {place} as long as they are on a lead.", "Animals must wait outside the {place}."),
        ("May I bring my pet to the {place}?", "Is my puppy allowed in the {place}?"),
    ),
    (
        ("A ramp beside the steps of the {place} is wide enough for wheelchairs.",),
        ("Can disabled visitors get into the {place}?", "Is the {place} accessible without stairs?"),
    ),
    (
        ("The {place} takes cards from {hour} euros on, and cash always.",),
        ("How can I pay at the {place}?", "Does the {place} accept credit cards?"),
    ),
    (
        ("Guests of the {place} get wireless internet for free; ask for the password.",),
        ("Is there wifi in the {place}?", "How do I go online at the {place}?"),
    ),
    (
        ("{name} has run the {place} for {number} years.", "The owner of the {place} is called {name}."),
        ("Who is in charge of the {place}?", "Whose business is the {place}?"),
    ),
    (
        ("Pupils and students pay half the price at the {place}.",),
        ("Is there a discount for young people at the {place}?", "Do children get a cheaper ticket at the {place}?"),
    ),
    (
        ("The {place} is looking for staff; write to {name} by {day}.",),
        ("Are there any jobs at the {place}?", "How do I apply for work at the {place}?"),
    ),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Sunday")
_NAMES = ("Anna Keller", "Tom Baker", "Mary Stone", "Peter Wood", "Lucy Hill", "Paul Rivers", "Jane Field")
_HOURS = ("six", "seven", "eight", "nine", "ten")


def write_synthetic_sentences(split: str, samples: int, seed: int, folder: Path) -> dict[str, dict[str, Any]]:
    """Write `samples` texts; returns {name: {"passage": name}} of passages, {name: {"relevant": [name]}} of questions.

    Raises StepError where more are asked for than there are.
    """
    pairs = [
        (f"{place} in {street}", fact) for place in _PLACES[split] for street in _STREETS[split] for fact in _FACTS
    ]
    if samples > 2 * len(pairs):
        raise StepError(
            f"there are {2 * len(pairs)} sentences for {split}, {samples} wanted",
            remedy="Ask for fewer: dataset.samples for calibration, evaluation.samples for evaluation.",
        )
    _shuffle(pairs, seed, split)
    entries = []
    truths: dict[str, dict[str, Any]] = {}
    for number in range(samples):
        place, (passages, questions) = pairs[number // 2]
        is_question = number % 2 == 1
        text = _text(seed, split, number, questions if is_question else passages, place)
        entry = Entry(f"{number:04d}", f"{number:04d}{TEXT}")
        (folder / entry.file).write_bytes(text.encode())
        entries.append(entry)
        truths[entry.name] = {"relevant": [entries[-2].name]} if is_question else {"passage": entry.name}
    write_index(folder, entries)
    return truths


def _shuffle(pairs: list[Any], seed: int, split: str) -> None:
    """Into an order that depends on the seed alone (Fisher and Yates)."""
    draw = generator(seed, split, -1)
    for last in range(len(pairs) - 1, 0, -1):
        other = below(draw, last + 1)
        pairs[last], pairs[other] = pairs[other], pairs[last]


def _text(seed: int, split: str, number: int, forms: tuple[str, ...], place: str) -> str:
    draw = generator(seed, split, number)
    return pick(draw, forms).format(
        place=place,
        hour=pick(draw, _HOURS),
        late=pick(draw, _HOURS),
        day=pick(draw, _DAYS),
        name=pick(draw, _NAMES),
        number=11 + below(draw, 89),
    )
