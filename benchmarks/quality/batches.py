"""Random training examples from packages: views of their descriptions, and questions with a letter for an answer."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .data import Item

# A letter a section, for the second type of question; sections that are not here are not asked about.
SECTIONS = {
    "admin": "A", "debug": "B", "database": "C", "devel": "D", "editors": "E", "fonts": "F", "games": "G",
    "graphics": "H", "javascript": "J", "kernel": "K", "libs": "L", "mail": "M", "net": "N", "doc": "O", "perl": "P",
    "python": "Q", "ruby": "R", "science": "S", "text": "T", "utils": "U", "video": "V", "web": "W", "sound": "X",
    "rust": "Y", "haskell": "Z", "golang": "I",
}  # fmt: skip
# Sections of code for programmers, which the first type of question tells from programs, data and documentation.
LIBRARIES = ("libs", "libdevel", "python", "perl", "haskell", "rust", "golang", "ruby", "javascript")
YES_OR_NO, LETTER = 0, 1
LETTERS_OFFERED = 4


@dataclass
class Question:
    """A text that ends in a question, the bytes that may answer it, and the one that does."""

    text: bytes
    legal: bytes
    answer: int
    group: int


@dataclass
class Views:
    """Three texts of one package: its phrase, (the beginning of) its paragraphs, and some text in another language."""

    short: bytes
    long: bytes
    translation: bytes | None


def crop(text: str, length: int) -> bytes:
    """The first `length` bytes, less what is left of a character that they cut."""
    return text.encode()[:length].decode(errors="ignore").encode()


class Sampler:
    """Endless batches, the same for the same seed. Every pass over the items is a new permutation."""

    def __init__(self, items: Sequence[Item], seed: int) -> None:
        self.items = items
        self.random = random.Random(seed)
        self.order: list[int] = []
        counts = Counter(language for item in items for language in item.translations)
        # Between one item, one vote (which would be mostly Danish and Italian) and all languages alike.
        self.weights = {language: count**-0.5 for language, count in counts.items()}
        self.by_section = by_section(items)

    def indices(self, count: int) -> list[int]:
        while len(self.order) < count:
            fresh = list(range(len(self.items)))
            self.random.shuffle(fresh)
            self.order = fresh + self.order
        return [self.order.pop() for _ in range(count)]

    def length(self, shortest: int, longest: int) -> int:
        """Log-uniform, so that short crops, which are cheap, are common and long ones are met."""
        return round(math.exp(self.random.uniform(math.log(shortest), math.log(longest))))

    def views(self, item: Item, shortest: int, longest: int, long_translations: float) -> Views:
        """Crops between the two lengths; `long_translations` is the share of them that are of the paragraphs."""
        long = item.english.long
        if len(long) > 2 * longest and self.random.random() < 0.15:
            long = long[self.random.randrange(len(long) - longest) :].partition(" ")[2]
        translation = None
        if item.translations:
            languages = list(item.translations)
            language = self.random.choices(languages, [self.weights[name] for name in languages])[0]
            description = item.translations[language]
            if self.random.random() < long_translations:
                translation = crop(description.long, self.length(shortest, longest))
            else:
                translation = crop(description.short, 160)
        return Views(crop(item.english.short, 96), crop(long, self.length(shortest, longest)), translation)

    def question(self, longest: int) -> Question:
        """Of either type, about a phrase or the beginning of the paragraphs, in any language."""
        return draw_question(self.by_section, self.random, longest, translated=0.25)


def by_section(items: Sequence[Item]) -> dict[str, list[Item]]:
    """The items of every section that is asked about."""
    sections: dict[str, list[Item]] = {name: [] for name in SECTIONS}
    for item in items:
        if item.section in sections:
            sections[item.section].append(item)
    return {name: members for name, members in sections.items() if members}


def draw_question(
    sections: dict[str, list[Item]], source: random.Random, longest: int, translated: float = 0.0
) -> Question:
    """A question of random type about the text of a random package; half of the yes-or-no ones are true.

    `translated` is the share of texts in another language, where there is one.
    """
    yes_or_no, true = source.random() < 0.5, source.random() < 0.5
    candidates = [name for name in sections if not yes_or_no or (name in LIBRARIES) == true]
    section = source.choices(candidates, [len(sections[name]) for name in candidates])[0]
    item = source.choice(sections[section])
    description = item.english
    if item.translations and source.random() < translated:
        description = source.choice(list(item.translations.values()))
    text = crop(description.short if source.random() < 0.5 else description.long, round(source.uniform(32, longest)))
    if yes_or_no:
        return Question(text + b"\nlibrary? ", b"yn", ord("y" if true else "n"), YES_OR_NO)
    others = source.sample([name for name in SECTIONS if name != section], LETTERS_OFFERED - 1)
    offered = [SECTIONS[name] for name in (section, *others)]
    source.shuffle(offered)
    return Question(text + b"\nsection? ", "".join(offered).encode(), ord(SECTIONS[section]), LETTER)


def held_out_questions(items: Sequence[Item], longest: int, count: int, seed: int) -> list[Question]:
    """English questions about packages that are not trained on, of both types."""
    source, sections = random.Random(seed), by_section(items)
    return [draw_question(sections, source, longest) for _ in range(count)]
