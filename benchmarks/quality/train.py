"""Trains the default checkpoint: a byte encoder of package descriptions, on a CPU, within a budget of time.

    python -m benchmarks.quality.train --data FOLDER --output FILE.safetensors --minutes 60

FOLDER is what `benchmarks.quality.data` fetched. A budget in steps instead of minutes makes a run repeatable.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.oracle import QUERY_TOKEN, Configuration, Oracle

from .batches import Question, Sampler, Views, crop, held_out_questions
from .data import Item, load, split
from .encoding import Crew, Encoded, products_in
from .objectives import Scale, choice_loss, info_nce, maxsim, word_teacher
from .optimizer import optimizers


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
    shortest: int = 40
    longest: int = 80
    longest_later: int = 448
    """Bytes of the longest crop of paragraphs: at the start, and from `lengthen` of the run on."""
    lengthen: float = 0.8
    whole: float = 0.01
    """Share of packages whose paragraphs are taken up to the context, whatever they cost."""
    long_translations: float = 0.25
    interaction_batch: int = 64
    """Packages a step whose token vectors are compared."""
    questions: int = 40
    question_longest: int = 128

    muon_rate: float = 0.02
    adam_rate: float = 3e-3
    weight_decay: float = 0.01
    warm_up: float = 0.03
    """Share of the run; the rates then fall to zero in a straight line."""
    gradient_norm: float = 5.0
    word_dimensions: int = 192
    strangers: int = 2048
    """Packages from outside the batch among which the word teacher asks for the right one."""
    products: str = "bfloat16"
    """What matrix products are in: bfloat16 or float32."""
    word_weight: float = 1.0
    """Weight of the word teacher at the start; it fades to a tenth."""
    interaction_weight: float = 0.5
    question_weight: float = 0.5


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


def question_logits(model: Oracle, states: Tensor, questions: Sequence[Question]) -> tuple[Tensor, Tensor, Tensor]:
    """Logits `[questions, 256]`, the bytes that are legal `[questions, 256]`, and the right ones `[questions]`.

    `states` `[questions, hidden]` are those of the query tokens.
    """
    logits = model.byte_logits(states, torch.tensor([question.group for question in questions]))
    legal = torch.zeros(len(questions), 256, dtype=torch.bool)
    for row, question in enumerate(questions):
        legal[row, list(question.legal)] = True
    return logits.float(), legal, torch.tensor([question.answer for question in questions])


def question_tokens(questions: Sequence[Question]) -> list[list[int]]:
    return [[*question.text, QUERY_TOKEN] for question in questions]


@dataclass
class Examples:
    """A batch: packages, their views, and questions."""

    indices: list[int]
    views: list[Views]
    translated: list[int]
    """Places in the batch of the packages that have a translation."""
    questions: list[Question]
    strangers: list[int]

    def tokens(self) -> list[Sequence[int]]:
        """Phrases, paragraphs, translations, questions."""
        texts: list[Sequence[int]] = [view.short for view in self.views] + [view.long for view in self.views]
        texts += [self.views[row].translation for row in self.translated]
        return texts + question_tokens(self.questions)


def draw(recipe: Recipe, sampler: Sampler, progress: float) -> Examples:
    growth = recipe.longest_later / recipe.longest
    longest = round(recipe.longest * growth ** min(1.0, progress / recipe.lengthen))
    indices = sampler.indices(recipe.batch)
    views = []
    for index in indices:
        whole = sampler.random.random() < recipe.whole
        bounds = (recipe.context, recipe.context) if whole else (recipe.shortest, longest)
        views.append(sampler.views(sampler.items[index], *bounds, recipe.long_translations))
    return Examples(
        indices,
        views,
        [row for row, view in enumerate(views) if view.translation],
        [sampler.question(recipe.question_longest) for _ in range(recipe.questions)],
        [sampler.random.randrange(len(sampler.items)) for _ in range(recipe.strangers)],
    )


def losses(
    trainee: Trainee, encoded: Encoded, examples: Examples, recipe: Recipe, teacher: Tensor, progress: float
) -> dict[str, Tensor]:
    """Losses by name and already weighted; their sum is what is minimised."""
    model, batch, translated = trainee.model, recipe.batch, examples.translated
    count = 2 * batch + len(translated)
    rows = encoded.pooled(model, count)
    shorts, longs, others = rows.split((batch, batch, len(translated)))
    scale = trainee.scale()

    guesses = functional.normalize(trainee.words(rows), dim=1)
    candidates = teacher[torch.tensor(examples.indices + examples.strangers)]
    own = torch.tensor([*range(batch), *range(batch), *translated])
    by_words = functional.cross_entropy(guesses @ candidates.T * trainee.word_scale(), own)

    queries, query_lengths = encoded.padded(range(recipe.interaction_batch))
    documents, document_lengths = encoded.padded(range(batch, batch + recipe.interaction_batch))
    with products_in(getattr(torch, recipe.products)):
        query_vectors, document_vectors = model.token_vectors(queries), model.token_vectors(documents)
        interactions = maxsim(query_vectors, query_lengths, document_vectors, document_lengths).float()

    query_states = encoded.last(range(count, count + recipe.questions))
    asked = question_logits(model, query_states, examples.questions)
    return {
        "english": info_nce(shorts @ longs.T, scale),
        "translated": 0.5 * info_nce(others @ longs[translated].T, scale)
        + 0.5 * info_nce(others @ shorts[translated].T, scale),
        "words": recipe.word_weight * max(0.1, 1 - progress / 0.7) * by_words,
        "interaction": recipe.interaction_weight * info_nce(interactions, trainee.interaction_scale()),
        "questions": recipe.question_weight * choice_loss(*asked),
    }


@torch.no_grad()
def calibrate(crew: Crew, items: Sequence[Item], recipe: Recipe, count: int = 2000) -> None:
    """Sets each group's inverse temperature to the one that makes held-out answers likeliest."""
    questions = held_out_questions(items, recipe.question_longest, count, recipe.seed)
    temperatures = crew.model.heads.inverse_temperatures
    temperatures.fill_(1.0)
    states = crew.encode(question_tokens(questions)).last(range(len(questions)))
    logits, legal, answers = question_logits(crew.model, states, questions)
    grid = torch.logspace(-1.5, 1.5, 301)
    for group in range(len(temperatures)):
        rows = torch.tensor([question.group == group for question in questions])
        found = [choice_loss(logits[rows] * inverse, legal[rows], answers[rows]) for inverse in grid]
        temperatures[group] = grid[torch.stack(found).argmin()]


@torch.no_grad()
def validate(crew: Crew, items: Sequence[Item]) -> float:
    """Recall at 1 from phrases to the first 256 bytes of paragraphs, among `items`."""
    texts = [item.english.short.encode() for item in items] + [crop(item.english.long, 256) for item in items]
    shorts, longs = crew.encode(texts).pooled(crew.model).chunk(2)
    return (shorts @ longs.T).argmax(1).eq(torch.arange(len(items))).float().mean().item()


def learning_rate(progress: float, warm_up: float) -> float:
    """Share of the full rate: up in a straight line, then down to zero at the end of the budget."""
    return min(progress / warm_up, (1 - progress) / (1 - warm_up)) if progress < 1 else 0.0


@dataclass(frozen=True)
class Budget:
    """How long a run is, and how it uses the machine."""

    minutes: float | None
    steps: int | None
    threads: int
    compiled: bool
    save_every: float

    def progress(self, steps: int, started: float) -> float:
        """Share of the run that is over. By wall time, a run that is paused ends on time, with fewer steps."""
        return steps / self.steps if self.steps else (time.monotonic() - started) / 60 / self.minutes


def train(recipe: Recipe, budget: Budget, folder: Path, output: Path, initial: Path | None) -> None:
    """Trains within the budget; `output` is written now and then, and, with fitted temperatures, at the end.

    `initial` is a checkpoint of the recipe's shape to start from.
    """
    started = time.monotonic()
    torch.manual_seed(recipe.seed)
    parts = split(load(folder))
    texts = [f"{item.english.short} {item.english.long}" for item in parts["train"]]
    teacher = word_teacher(texts, recipe.word_dimensions, recipe.seed)
    trainee = Trainee(recipe)
    model = trainee.model
    if initial is not None:
        # Patches of other modalities may be there too, and are not trained.
        state = Oracle.from_checkpoint(initial).state_dict()
        model.load_state_dict({name: state[name] for name in model.state_dict()})
    # Lengths differ from group to group: one graph for all of them instead of one a length.
    forward = torch.compile(model, dynamic=True) if budget.compiled else model
    crew = Crew(model, forward, budget.threads, getattr(torch, recipe.products))
    extra = [parameter for name, parameter in trainee.named_parameters() if not name.startswith("model.")]
    optimizing = optimizers(model, extra, recipe.muon_rate, recipe.adam_rate, recipe.weight_decay)
    full_rates = [optimizer.param_groups[0]["lr"] for optimizer in optimizing]
    sampler = Sampler(parts["train"], recipe.seed)
    validation = random.Random(recipe.seed).sample(parts["validation"], 500)

    step, progress, saved = 0, 0.0, time.monotonic()
    averages: dict[str, float] = {}
    while progress < 1:
        examples = draw(recipe, sampler, progress)
        encoded = crew.encode(examples.tokens(), gradients=True)
        found = losses(trainee, encoded, examples, recipe, teacher, progress)
        sum(found.values()).backward()
        crew.backward(encoded)
        norm = nn.utils.clip_grad_norm_(trainee.parameters(), recipe.gradient_norm)
        for optimizer, full in zip(optimizing, full_rates, strict=True):
            optimizer.param_groups[0]["lr"] = full * learning_rate(progress, recipe.warm_up)
            optimizer.step()
        trainee.zero_grad()
        step += 1
        progress = budget.progress(step, started)
        for name, loss in found.items():
            averages[name] = 0.9 * averages.get(name, loss.item()) + 0.1 * loss.item()
        if step % 10 == 0:
            minutes = (time.monotonic() - started) / 60
            numbers = " ".join(f"{name} {value:.3f}" for name, value in averages.items())
            print(f"{step} {minutes:.1f} min {numbers} norm {norm:.2f} scale {trainee.scale():.1f}", flush=True)
        if time.monotonic() - saved > 60 * budget.save_every:
            saved = time.monotonic()
            model.save(output)
            print(f"{step} validation: recall@1 {validate(crew, validation):.3f} of {len(validation)}", flush=True)

    # The temperatures are fitted to the weights as they ship.
    model.save(output)
    shipped = Oracle.from_checkpoint(output)
    crew = Crew(shipped, shipped, budget.threads, torch.float32)
    calibrate(crew, parts["validation"], recipe)
    shipped.save(output)
    print(f"{step} steps, validation: recall@1 {validate(crew, validation):.3f} of {len(validation)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--initial", type=Path, help="checkpoint to start from instead of random weights")
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=float)
    budget.add_argument("--steps", type=int)
    parser.add_argument("--compile", action="store_true", help="compile the forward pass; needs a C++ compiler")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--save-every", type=float, default=5.0, help="minutes between checkpoints")
    for entry in fields(Recipe):
        parser.add_argument(f"--{entry.name.replace('_', '-')}", type=type(entry.default), default=entry.default)
    arguments = parser.parse_args()
    recipe = Recipe(**{entry.name: getattr(arguments, entry.name) for entry in fields(Recipe)})
    allowance = Budget(arguments.minutes, arguments.steps, arguments.threads, arguments.compile, arguments.save_every)
    print(recipe)
    train(recipe, allowance, arguments.data, arguments.output, arguments.initial)


if __name__ == "__main__":
    main()
