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
        self.asked = [item for item in items if item.section in SECTIONS]

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
        """Either type by turns of chance, about a phrase or the beginning of the paragraphs, in any language."""
        item = self.random.choice(self.asked)
        description = item.english
        if item.translations and self.random.random() < 0.25:
            description = self.random.choice(list(item.translations.values()))
        text = description.short if self.random.random() < 0.5 else description.long
        return ask(crop(text, self.length(32, longest)), item.section, self.random)


def ask(text: bytes, section: str, source: random.Random) -> Question:
    """A question of random type about a text of a package in `section`; half of the yes-or-no ones are true."""
    others = [name for name in SECTIONS if name != section]
    if source.random() < 0.5:
        true = source.random() < 0.5
        named = section if true else source.choice(others)
        return Question(text + f"\n{named}? ".encode(), b"yn", ord("y" if true else "n"), YES_OR_NO)
    offered = [SECTIONS[name] for name in (section, *source.sample(others, LETTERS_OFFERED - 1))]
    source.shuffle(offered)
    return Question(text + b"\nsection? ", "".join(offered).encode(), ord(SECTIONS[section]), LETTER)


def held_out_questions(items: Sequence[Item], longest: int, count: int, seed: int) -> list[Question]:
    """English questions about `count` of the items, or all: of both types, about phrases and paragraphs by turns."""
    source = random.Random(seed)
    asked = [item for item in items if item.section in SECTIONS]
    chosen = source.sample(asked, min(count, len(asked)))
    texts = [item.english.short if index % 2 else item.english.long for index, item in enumerate(chosen)]
    return [ask(crop(text, longest), item.section, source) for text, item in zip(texts, chosen, strict=True)]
