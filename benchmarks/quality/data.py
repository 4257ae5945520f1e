"""Debian's package descriptions: fetching, parsing, pairing, splitting.

A Debian package has a short description (a phrase) and a long one (paragraphs), and volunteers translate both. apt
publishes them as `Translation-*` lists: RFC 822 stanzas that name the English original by `Description-md5`. The
`Packages` lists add the source package, by which packages are split: the packages of one source describe themselves in
nearly the same words.

    python -m benchmarks.quality.data FOLDER

fetches the lists into FOLDER with apt, under a configuration, lists and cache of its own, and prints what there is.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

SUITE = "bookworm"
MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
LANGUAGES = ("da", "it", "fr", "de", "sk", "pt_BR", "ja", "ko", "uk", "pl", "ru", "zh_CN")
SPLITS = ("train", "validation", "test")
HELD_OUT_PERCENT = 10
VALIDATION_PERCENT = 2


@dataclass
class Description:
    """Both fields in one language."""

    short: str
    long: str


@dataclass
class Item:
    """A package whose English description no other package shares."""

    package: str
    source: str
    section: str
    english: Description
    translations: dict[str, Description] = field(default_factory=dict)

    @property
    def split(self) -> str:
        return split_of(self.source)


def fetch(folder: Path, mirror: str = MIRROR, suite: str = SUITE, languages: Iterable[str] = LANGUAGES) -> None:
    """Downloads the lists into `folder`/lists; the machine's own sources, lists and cache are neither used nor changed.

    apt's settings for proxies and certificates do apply.
    """
    folder = folder.resolve()
    for name in ("lists/partial", "cache/archives/partial", "state"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "state" / "status").touch()
    source = f"deb [arch=amd64 signed-by={KEYRING}] {mirror} {suite} main\n"
    (folder / "sources.list").write_text(source)
    wanted = "".join(f'Acquire::Languages:: "{language}";\n' for language in ("en", *languages))
    configuration = folder / "apt.conf"
    # The clear directives drop what the machine says: containers often ask for no language at all.
    configuration.write_text(
        f"#clear Acquire::Languages;\n{wanted}"
        f'Dir::State "{folder}/state";\nDir::State::lists "{folder}/lists";\n'
        f'Dir::State::status "{folder}/state/status";\n'
        f'Dir::Cache "{folder}/cache";\nDir::Etc::sourcelist "{folder}/sources.list";\nDir::Etc::sourceparts "-";\n'
        'Acquire::GzipIndexes "false";\nAPT::Sandbox::User "";\n#clear APT::Update::Post-Invoke;\n'
        "#clear APT::Update::Post-Invoke-Success;\n"
    )
    subprocess.run(["apt-get", "-c", str(configuration), "update", "--error-on=any"], check=True)


def stanzas(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Fields of each RFC 822 stanza; continuation lines keep their newline, and lose the space that marks them."""
    fields: dict[str, str] = {}
    name = ""
    for line in lines:
        line = line.rstrip("\n")
        if not line.strip():
            if fields:
                yield fields
            fields, name = {}, ""
        elif line[0] in " \t":
            if name:
                fields[name] += "\n" + line[1:]
        else:
            name, _, value = line.partition(":")
            fields[name] = value.strip()
    if fields:
        yield fields


def parse_description(value: str) -> Description:
    """The value of a `Description` field: a phrase, then paragraphs parted by lines of a full stop.

    Lines of a paragraph are joined, since where they break says nothing; lines with a space more are verbatim (lists).
    """
    short, *rest = value.split("\n")
    long = ""
    for line in rest:
        text = line.rstrip()
        if text == ".":
            long = long.rstrip("\n") + "\n"
        elif text.startswith(" "):
            long += ("" if long.endswith("\n") or not long else "\n") + text.strip() + "\n"
        elif text:
            long += ("" if long.endswith("\n") or not long else " ") + text
    return Description(short.strip(), long.strip())


def family(source: str) -> str:
    """The name of a source package less its versions: `gcc-11` and `gcc-12` say the same of themselves."""
    return re.sub(r"[-.]?\d+(\.\d+)*", "", source) or source


def split_of(source: str) -> str:
    """The part that a source package belongs to, by a hash that no run and no machine changes."""
    bucket = int.from_bytes(hashlib.sha256(family(source).encode()).digest()[:4], "little") % 100
    if bucket < HELD_OUT_PERCENT:
        return "test"
    return "validation" if bucket < HELD_OUT_PERCENT + VALIDATION_PERCENT else "train"


def join(
    packages: Iterable[dict[str, str]], english: Iterable[dict[str, str]], others: dict[str, Iterable[dict[str, str]]]
) -> list[Item]:
    """Items from stanzas of the Packages list, of the English list, and of the other languages' lists.

    Kept are descriptions whose short and long text are each nobody else's, and translations that differ from the
    English in both fields. Packages come in the order of their names.
    """
    known: dict[str, tuple[str, str]] = {}
    for stanza in packages:
        source = stanza.get("Source", stanza["Package"]).split(" ")[0]
        known.setdefault(stanza["Package"], (source, stanza.get("Section", "unknown").split("/")[-1]))
    items: dict[str, Item] = {}
    for stanza in english:
        package, digest = stanza["Package"], stanza["Description-md5"]
        if package in known and digest not in items and "Description-en" in stanza:
            items[digest] = Item(package, *known[package], parse_description(stanza["Description-en"]))
    shorts = Counter(item.english.short for item in items.values())
    longs = Counter(item.english.long for item in items.values())
    items = {
        digest: item
        for digest, item in items.items()
        if shorts[item.english.short] == 1
        and longs[item.english.long] == 1
        and item.english.short
        and item.english.long
    }
    for language, translated in others.items():
        for stanza in translated:
            item = items.get(stanza["Description-md5"])
            value = stanza.get(f"Description-{language}")
            if item is None or value is None:
                continue
            description = parse_description(value)
            differs = description.short != item.english.short and description.long != item.english.long
            if differs and description.short and description.long:
                item.translations[language] = description
    return sorted(items.values(), key=lambda item: item.package)


def load(folder: Path) -> list[Item]:
    """Items from the lists that `fetch` brought to `folder`."""

    def read(pattern: str) -> Iterator[dict[str, str]]:
        for path in sorted((folder / "lists").glob(pattern)):
            with path.open(encoding="utf-8") as lines:
                yield from stanzas(lines)

    # apt escapes the underscore of `pt_BR` in the names of its lists.
    others = {language: read(f"*_i18n_Translation-{language.replace('_', '%5f')}") for language in LANGUAGES}
    items = join(read("*_binary-amd64_Packages"), read("*_i18n_Translation-en"), others)
    if not items:
        raise FileNotFoundError(f"no lists in {folder}: fetch them first")
    return items


def split(items: Iterable[Item]) -> dict[str, list[Item]]:
    """Items by part; no source package, and no family of them, is in two."""
    parts: dict[str, list[Item]] = {name: [] for name in SPLITS}
    for item in items:
        parts[item.split].append(item)
    families = {name: {family(item.source) for item in part} for name, part in parts.items()}
    assert not families["train"] & families["test"]
    assert not families["train"] & families["validation"]
    assert not families["validation"] & families["test"]
    return parts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mirror", default=MIRROR)
    arguments = parser.parse_args()
    fetch(arguments.folder, arguments.mirror)
    parts = split(load(arguments.folder))
    for name, part in parts.items():
        languages = Counter(language for item in part for language in item.translations)
        print(f"{name}: {len(part)} packages of {len({item.source for item in part})} sources; {dict(languages)}")


if __name__ == "__main__":
    main()
