"""Trains the default checkpoint: a byte encoder of package descriptions, on a CPU, within a budget of time.

    python -m benchmarks.quality.train --data FOLDER --output FILE.safetensors --minutes 60

FOLDER is what `benchmarks.quality.data` fetched. A budget in steps instead of minutes makes a run repeatable.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.oracle import QUERY_TOKEN, Configuration, Oracle

from .batches import Question, Sampler, crop, held_out_questions
from .data import Item, load, split
from .objectives import Scale, choice_loss, info_nce, maxsim, word_teacher
from .optimizer import optimizers

Forward = Callable[[Tensor, Tensor], Tensor]
"""Tokens `[batch, tokens]` and lengths `[batch]` to states: the model, compiled or not."""


@dataclass(frozen=True)
class Recipe:
    """Everything that a run depends on, the data aside."""

    seed: int = 0
    depth: int = 4
    hidden: int = 256
    head_dimension: int = 64
    dimensions: int = 256
    context: int = 1024
    token_width: int = 64
    choice_temperature_groups: int = 2

    batch: int = 128
    """Packages a step: every one is a negative of every other."""
    shortest: int = 48
    longest: tuple[int, int] = (96, 512)
    """Bytes of the longest crop of paragraphs, at the start and from `lengthen` of the run on."""
    lengthen: float = 0.5
    whole: float = 0.01
    """Share of packages whose paragraphs are taken up to the context, whatever they cost."""
    long_translations: float = 0.25
    interaction_batch: int = 32
    """Packages a step whose token vectors are compared."""
    questions: int = 24
    question_longest: int = 128
    group: int = 64
    """Texts, of like length, that are padded to one length and go through the model together."""

    muon_rate: float = 0.02
    adam_rate: float = 3e-3
    weight_decay: float = 0.01
    warm_up: float = 0.03
    """Share of the run; the rates then fall to zero in a straight line."""
    gradient_norm: float = 5.0
    word_dimensions: int = 192
    strangers: int = 2048
    """Packages from outside the batch among which the word teacher asks for the right one."""
    word_weight: float = 1.0
    """Weight of the word teacher at the start; it fades to a tenth."""
    interaction_weight: float = 0.3
    question_weight: float = 0.3


class Trainee(nn.Module):
    """The model and what is only there while it is trained."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        configuration = Configuration(
            depth=recipe.depth,
            hidden=recipe.hidden,
            head_dimension=recipe.head_dimension,
            width=Configuration.width_for(recipe.hidden),
            dimensions=recipe.dimensions,
            context=recipe.context,
            token_width=recipe.token_width,
            choice_temperature_groups=recipe.choice_temperature_groups,
        )
        self.model = Oracle.random(configuration, recipe.seed)
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                if name.endswith(("attention.output", "mlp.down")):
                    parameter.zero_()  # Every block starts as the identity and takes its place in the sum by learning.
                elif parameter.dim() == 1:
                    parameter.fill_(1.0)
                elif name == "heads.bytes":
                    parameter.mul_(0.1)
        # Temperatures are fitted once the weights are final: in training they would only be one more rate.
        self.model.heads.inverse_temperatures.requires_grad_(False)
        self.scale = Scale(15.0)
        self.interaction_scale = Scale(15.0)
        self.word_scale = Scale(10.0)
        self.words = nn.Linear(recipe.dimensions, recipe.word_dimensions, bias=False)


@dataclass
class Encoded:
    """States of texts that went through the model in groups of like length."""

    groups: list[tuple[list[int], Tensor, Tensor]]
    """Indices of the texts, states `[group, tokens, hidden]`, lengths `[group]`."""
    where: dict[int, tuple[int, int]]
    """The group, and the row in it, of each text."""

    def padded(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """States `[indices, tokens, hidden]` of some texts, and their lengths."""
        places = [self.where[index] for index in indices]
        lengths = torch.stack([self.groups[group][2][row] for group, row in places])
        count = int(lengths.max())
        rows = [self.groups[group][1][row, :count] for group, row in places]
        return nn.utils.rnn.pad_sequence(rows, batch_first=True), lengths

    def last(self, count: int) -> Tensor:
        """`[count, hidden]`: the state of the last token of each of the first `count` texts."""
        places = [self.where[index] for index in range(count)]
        return torch.stack([self.groups[group][1][row, self.groups[group][2][row] - 1] for group, row in places])

    def pooled(self, model: Oracle) -> Tensor:
        """Embeddings `[texts, dimensions]` of all texts, float32."""
        order = torch.tensor([index for indices, _, _ in self.groups for index in indices])
        rows = torch.cat([model.pool(states, lengths).float() for _, states, lengths in self.groups])
        return rows[order.argsort()]


def encode(forward: Forward, texts: Sequence[Sequence[int]], group: int) -> Encoded:
    """Runs texts (tokens) through the model, `group` at a time, sorted by length; padded to a multiple of 16."""
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    groups, where = [], {}
    for start in range(0, len(order), group):
        indices = order[start : start + group]
        lengths = torch.tensor([len(texts[index]) for index in indices])
        tokens = torch.zeros(len(indices), -(-int(lengths.max()) // 16) * 16, dtype=torch.int64)
        for row, index in enumerate(indices):
            tokens[row, : len(texts[index])] = torch.tensor(list(texts[index]))
            where[index] = (len(groups), row)
        groups.append((indices, forward(tokens, lengths), lengths))
    return Encoded(groups, where)


def question_logits(
    forward: Forward, model: Oracle, questions: Sequence[Question], group: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Logits `[questions, 256]`, the bytes that are legal `[questions, 256]`, and the right ones `[questions]`."""
    encoded = encode(forward, [[*question.text, QUERY_TOKEN] for question in questions], group)
    logits = model.byte_logits(encoded.last(len(questions)), torch.tensor([question.group for question in questions]))
    legal = torch.zeros(len(questions), 256, dtype=torch.bool)
    for row, question in enumerate(questions):
        legal[row, list(question.legal)] = True
    return logits.float(), legal, torch.tensor([question.answer for question in questions])


def losses(
    trainee: Trainee, forward: Forward, recipe: Recipe, sampler: Sampler, teacher: Tensor, progress: float
) -> dict[str, Tensor]:
    """Losses of a fresh batch, by name and already weighted; their sum is what is minimised."""
    first, last = recipe.longest
    longest = round(first * (last / first) ** min(1.0, progress / recipe.lengthen))
    indices = sampler.indices(recipe.batch)
    views = []
    for index in indices:
        whole = sampler.random.random() < recipe.whole
        bounds = (recipe.context, recipe.context) if whole else (recipe.shortest, longest)
        views.append(sampler.views(sampler.items[index], *bounds, recipe.long_translations))
    translated = [row for row, view in enumerate(views) if view.translation]
    texts = [view.short for view in views] + [view.long for view in views]
    texts += [views[row].translation for row in translated]
    questions = [sampler.question(recipe.question_longest) for _ in range(recipe.questions)]
    compared = recipe.interaction_batch

    with torch.autocast("cpu", torch.bfloat16):
        encoded = encode(forward, texts, recipe.group)
        rows = encoded.pooled(trainee.model)
        short_states, short_lengths = encoded.padded(range(compared))
        long_states, long_lengths = encoded.padded(range(recipe.batch, recipe.batch + compared))
        interactions = maxsim(
            trainee.model.token_vectors(short_states),
            short_lengths,
            trainee.model.token_vectors(long_states),
            long_lengths,
        ).float()
        logits, legal, answers = question_logits(forward, trainee.model, questions, recipe.group)
        guesses = functional.normalize(trainee.words(rows).float(), dim=1)

    shorts, longs, others = rows.split((recipe.batch, recipe.batch, len(translated)))
    scale = trainee.scale()
    strangers = [sampler.random.randrange(len(teacher)) for _ in range(recipe.strangers)]
    candidates = teacher[torch.tensor(indices + strangers)]
    own = torch.tensor([*range(recipe.batch), *range(recipe.batch), *translated])
    by_words = functional.cross_entropy(guesses @ candidates.T * trainee.word_scale(), own)
    return {
        "english": info_nce(shorts @ longs.T, scale),
        "translated": 0.5 * info_nce(others @ longs[translated].T, scale)
        + 0.5 * info_nce(others @ shorts[translated].T, scale),
        "words": recipe.word_weight * max(0.1, 1 - progress / 0.7) * by_words,
        "interaction": recipe.interaction_weight * info_nce(interactions, trainee.interaction_scale()),
        "questions": recipe.question_weight * choice_loss(logits, legal, answers),
    }


@torch.no_grad()
def calibrate(model: Oracle, items: Sequence[Item], recipe: Recipe, count: int = 2000) -> None:
    """Sets each group's inverse temperature to the one that makes held-out answers likeliest."""
    questions = held_out_questions(items, recipe.question_longest, count, recipe.seed)
    temperatures = model.heads.inverse_temperatures
    temperatures.fill_(1.0)
    logits, legal, answers = question_logits(model, model, questions, recipe.group)
    grid = torch.logspace(-1.5, 1.5, 301)
    for group in range(len(temperatures)):
        rows = torch.tensor([question.group == group for question in questions])
        found = [choice_loss(logits[rows] * inverse, legal[rows], answers[rows]) for inverse in grid]
        temperatures[group] = grid[torch.stack(found).argmin()]


@torch.no_grad()
def validate(model: Oracle, forward: Forward, items: Sequence[Item], group: int) -> float:
    """Recall at 1 from phrases to the first 256 bytes of paragraphs, among `items`."""
    with torch.autocast("cpu", torch.bfloat16):
        shorts = encode(forward, [item.english.short.encode() for item in items], group).pooled(model)
        longs = encode(forward, [crop(item.english.long, 256) for item in items], group).pooled(model)
    return (shorts @ longs.T).argmax(1).eq(torch.arange(len(items))).float().mean().item()


def learning_rate(progress: float, warm_up: float) -> float:
    """Share of the full rate: up in a straight line, then down to zero at the end of the budget."""
    return min(progress / warm_up, (1 - progress) / (1 - warm_up)) if progress < 1 else 0.0


def train(
    recipe: Recipe, folder: Path, output: Path, minutes: float | None, steps: int | None, compiled: bool, every: float
) -> None:
    """Trains within the budget; `output` is written every `every` minutes and, calibrated, at the end.

    Progress is wall time where the budget is one, so a run that is paused ends on time with fewer steps.
    """
    torch.manual_seed(recipe.seed)
    parts = split(load(folder))
    started = time.monotonic()
    teacher = word_teacher(
        [f"{item.english.short} {item.english.long}" for item in parts["train"]], recipe.word_dimensions, recipe.seed
    )
    trainee = Trainee(recipe)
    # Lengths differ from group to group: one dynamic graph instead of one a length.
    forward = torch.compile(trainee.model, dynamic=True) if compiled else trainee.model
    extra = [parameter for name, parameter in trainee.named_parameters() if not name.startswith("model.")]
    optimizing = optimizers(trainee.model, extra, recipe.muon_rate, recipe.adam_rate, recipe.weight_decay)
    full_rates = [optimizer.param_groups[0]["lr"] for optimizer in optimizing]
    sampler = Sampler(parts["train"], recipe.seed)
    validation = random.Random(recipe.seed).sample(parts["validation"], 500)

    step, saved, progress = 0, 0.0, 0.0
    averages: dict[str, float] = {}
    while progress < 1:
        found = losses(trainee, forward, recipe, sampler, teacher, progress)
        sum(found.values()).backward()
        norm = nn.utils.clip_grad_norm_(trainee.parameters(), recipe.gradient_norm)
        for optimizer, full in zip(optimizing, full_rates, strict=True):
            optimizer.param_groups[0]["lr"] = full * learning_rate(progress, recipe.warm_up)
            optimizer.step()
            optimizer.zero_grad()
        trainee.zero_grad()
        step += 1
        elapsed = (time.monotonic() - started) / 60
        progress = step / steps if steps else elapsed / minutes
        for name, loss in found.items():
            averages[name] = 0.95 * averages.get(name, loss.item()) + 0.05 * loss.item()
        if step % 10 == 0:
            numbers = " ".join(f"{name} {value:.3f}" for name, value in averages.items())
            print(f"{step} {elapsed:.1f} min {numbers} norm {norm:.2f} scale {trainee.scale():.1f}", flush=True)
        if elapsed > saved + every:
            saved = elapsed
            recall = validate(trainee.model, forward, validation, recipe.group)
            print(f"{step} {elapsed:.1f} min validation: recall@1 {recall:.3f} of {len(validation)}", flush=True)
            trainee.model.save(output)

    trainee.model.save(output)
    # The temperatures are fitted to the weights as they ship.
    model = Oracle.from_checkpoint(output)
    calibrate(model, parts["validation"], recipe)
    model.save(output)
    recall = validate(model, model, validation, recipe.group)
    print(f"{step} steps, validation: recall@1 {recall:.3f} of {len(validation)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=float)
    budget.add_argument("--steps", type=int)
    parser.add_argument("--compile", action="store_true", help="compile the forward pass; needs a C++ compiler")
    parser.add_argument("--save-every", type=float, default=5.0, help="minutes between checkpoints")
    for name in ("batch", "word_weight", "muon_rate", "adam_rate"):
        kind = type(getattr(Recipe, name))
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=getattr(Recipe, name))
    arguments = parser.parse_args()
    recipe = Recipe(
        batch=arguments.batch,
        word_weight=arguments.word_weight,
        muon_rate=arguments.muon_rate,
        adam_rate=arguments.adam_rate,
    )
    print(recipe)
    train(
        recipe,
        arguments.data,
        arguments.output,
        arguments.minutes,
        arguments.steps,
        arguments.compile,
        arguments.save_every,
    )


if __name__ == "__main__":
    main()
