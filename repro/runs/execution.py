"""The making of a run, from its settings to its record: train, average, decode, score."""

import functools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, cast

import torch

from repro.claims.lists import catalogue_digest
from repro.corpora.pair import languages
from repro.data.batch_by import RECORDED
from repro.data.shards import Split
from repro.decoding import backend as backends
from repro.decoding.bleu import sacrebleu_score
from repro.model import compiled
from repro.model.build import compile_layers, gradient_norm, reads_ragged
from repro.model.config import BASE, written
from repro.model.cost import TextSizes, training_flops
from repro.model.ragged import WIDEST
from repro.results import record
from repro.results.labels import relation
from repro.results.provenance import Provenance, provenance
from repro.results.record import Record
from repro.results.systems import system_text
from repro.results.task import LAST_MEAN, LENGTH, TRANSLATION, Named, Scores, without_value
from repro.runs import determinism
from repro.runs.changed import origin
from repro.runs.further_tests import note_further
from repro.runs.inside import note_inside
from repro.runs.load import TOKENIZER
from repro.runs.progress import Watched
from repro.runs.run import Run, Settings
from repro.runs.silence import Silence
from repro.storage import atomic
from repro.storage.journal import Journal, read, read_all
from repro.storage.lease import Lease, Superseded
from repro.tracking.mirror import Mirror
from repro.tracking.run_folder import PRINTED_SCORES, RECORD, write_run
from repro.tracking.tracker import Tracker
from repro.training import averaging, checkpoint, cpu_tuning, loop
from repro.training.group import Group
from repro.training.module import NonFinite, TranslationModule
from repro.training.trial import Scored, Trial


class Stopped(Exception):
    """The run was asked to stop; it has left a checkpoint and will go on from it."""


@dataclass(frozen=True, kw_only=True)
class Execution(Run):
    """A run, and who makes it, watches it and may stop it."""

    tracker: Tracker
    progress: Watched
    should_stop: Callable[[], bool]
    group: Group | None = None  # the processes that share each update; None: this one alone

    @property
    def is_first(self) -> bool:
        """Whether this process writes, decodes and scores: of several one does."""
        return self.group is None or self.group.is_first

    @cached_property
    def trial(self) -> Trial:
        """What it computes."""
        return Trial(**vars(self.recipe))

    def agreed_finished(self) -> Record | None:
        """The same as the first process sees it, in each of those that make this run: others need not see its folder.

        Raises ValueError in a process that would make another run than the first.
        """
        done = self.finished() if self.is_first else None
        if self.group is None:
            return done
        first, found = self._told([self.decides, done and asdict(done)])
        own = self.decides
        different = sorted(name for name in first.keys() | own.keys() if first.get(name) != own.get(name))
        if different:
            what = "; ".join(f"{name} {first.get(name)} there, {own.get(name)} here" for name in different)
            raise ValueError(
                f"{str(self.group.peer).capitalize()} would make a different run from the first process: {what}. Start "
                "the same command, with the same code and the same text, on each node."
            )
        return Record(**found) if found else None

    def _told(self, word: Any) -> Any:
        """What the first of the processes that make this run has to say."""
        assert self.group is not None
        try:
            return self.group.told(word, self.should_stop)
        except InterruptedError:
            raise Stopped(f"{self.settings.name}: stopped while the first process works alone") from None

    def execute(self) -> Record | None:
        """Train or go on, evaluate, write `record.json`. Processes after the first train, and are told the record.

        Raises `Stopped` if asked to stop before the end, BlockingIOError if another process makes this run.
        """
        tuned = self.trial.tune()
        stamp = provenance(system=self.settings.system, task=self.settings.task)
        memory = cpu_tuning.PeakMemory()
        module = self.trial.module()
        arithmetic = (*tuned, *made_for_gpu(module.model, self.settings, self.progress.say))
        conditions = determinism.conditions(stamp, self.settings.devices, arithmetic)
        if self.group and not self.is_first:
            if done := self.agreed_finished():
                return done
            self._train(module, Silence(), conditions)
            return Record(**self._told(None))
        with (
            Lease(self.folder, self.last_step(), self.is_in_hand, self.progress.say) as lease,
            Journal(self.folder / "journal.jsonl", attempt=lease.number, check=lease.check) as journal,
        ):
            claims = self._describe(stamp)
            if done := self.agreed_finished():
                return done  # made by another process, whose journal this one waited for
            where = stamp["device"] if torch.cuda.is_available() else f"the processor, {stamp['device']}"
            self.progress.say(f"{self.settings.name}: run {self.id} on {where}")
            atomic.sweep(self.folder, alone=True)
            self.prepared.tokenizer.save(self.folder / TOKENIZER)  # the cache may be gone when the run is worked with
            mirror = Mirror(self.tracker, self.folder)
            outcome = "KILLED"
            try:
                done = self._train_and_evaluate(module, journal, stamp, mirror, conditions, memory)
                done = replace(done, claims=claims)
                journal.sync()
                lease.check()
                done.save(self.folder / RECORD)  # before anybody waits for MLflow
                outcome = "FINISHED" if done.status == "finished" else "FAILED"
            except Stopped:
                raise  # it goes on some time
            except Superseded:
                outcome = "RUNNING"  # by another process
                raise
            except Exception:
                outcome = "FAILED"
                raise
            finally:
                mirror.close(outcome)
            if mirror.run_id != done.stamp["mlflow_run"]:  # not known before: the run was shorter than MLflow's start
                done = replace(done, stamp={**done.stamp, "mlflow_run": mirror.run_id})
                lease.check()
                done.save(self.folder / RECORD)
            tell = functools.cache(self.progress.say)  # what both have to say is said once
            note_inside(self, done, tell)  # a reader can do without these, so the record comes first
            note_further(self, done, self.tracker, tell, self._translating)
            checkpoint.prune(self.folder / "checkpoints", keep=self.settings.hyper.averaged_steps)  # the mean is made
        if self.group:
            self._told(asdict(done))
        return done

    def _train_and_evaluate(
        self,
        module: TranslationModule,
        journal: Journal,
        stamp: Provenance,
        mirror: Mirror,
        conditions: dict[str, Any],
        memory: cpu_tuning.PeakMemory,
    ) -> Record:
        nothing = without_value(self.settings.task.facts)
        scores, subset, weights, last_mean = Scores(dev=nothing, test={**nothing}), None, None, None
        begun_at = self.last_step()
        fitted = self._train(module, journal, conditions)
        machine = conditions["arithmetic"]
        if fitted.cost.steps > begun_at:
            machine = self._as_it_was(machine)
        started = time.monotonic()
        if fitted.diverged:
            self._note(fitted.diverged)
        elif found := self._scored(module.model):
            scores, subset, weights = found
        cost = self._cost(fitted.cost, time.monotonic() - started, memory.bytes())
        if weights:
            last_mean = self._scored_by_last_mean(module.model, scores, weights)
        _note_scores(journal, scores, last_mean)
        return Record(
            run=self.id,
            table=self.settings.table,
            row=self.settings.row,
            position=self.settings.position,
            scale=self.settings.scale.name,
            seed=self.settings.seed,
            pair=self.settings.task.name,
            corpus=self._text(),
            tokenizer={"sha256": self.prepared.tokenizer.sha256, "size": self.prepared.tokenizer.size},
            hyper=asdict(self.settings.hyper),
            settings={**self._chosen(), "machine": machine},
            paper=self.settings.paper,
            params=self.params,
            scores=scores,
            curves={"train": self._curve("train"), "dev": self._curve("dev")},
            cost=cost,
            stamp=record.Stamp(**stamp, mlflow_run=mirror.run_id),
            status="finished" if weights else "diverged",
            determinism=determinism.determinism(
                fitted.reproducibility,
                plan=self.trial.data().order_digest(fitted.cost.steps, self.trial.shares),
                shares=fitted.cost.steps * self.trial.shares,
                lines=read_all(self.folder / "journal.jsonl"),
                weights=weights,
                due=determinism.lines_due(
                    fitted.cost.steps,
                    log=self.settings.scale.log_every,
                    validate=self.settings.scale.validate_every,
                    last=self.settings.hyper.steps,
                ),
            ),
            test_subset=subset,
            task=None if self.settings.task.facts == TRANSLATION else self.settings.task.facts,
            system=system_text(self.settings.system) or None,
            last_mean=last_mean,
        )

    def _as_it_was(self, machine: str) -> str:
        """The arithmetic without what was meant to be compiled and was not."""
        settings = machine.split(", ")
        if COMPILED not in settings or not (reason := compiled.given_up()):
            return machine
        self.progress.say(f"{self.settings.name}: its record does not say that layers were compiled: {reason}.")
        return ", ".join(one for one in settings if one != COMPILED)

    def _scored(self, model: Any) -> tuple[Scores, Named | None, str] | None:
        """Scores of dev and test, of the lines of test apart, and the digest of the weights; None: it diverged."""
        model.load_state_dict(self.trial.averaged(self.folder / "checkpoints", self.id))
        weights = determinism.weights_digest(model.state_dict())
        with self.trial.opened(model) as opened:
            dev = self._evaluate(opened, "dev", self.prepared.dev)
            test = self._evaluate(opened, "test", self.prepared.test)
        if not (_is_finite(dev.scores) and _is_finite(test.scores)):
            self.progress.say(f"{self.settings.name}: perplexity of held-out text is not finite: it diverged")
            return None
        return Scores(dev=dev.scores, test=test.scores), self._score_subset(test.hypotheses), weights

    def _scored_by_last_mean(self, model: Any, scores: Scores, weights: str) -> record.LastMean | None:
        """What the mean of the last checkpoints is worth on dev and test; None where no number holds it.

        After the paper's weights, whose scores it does not touch: these are loaded in their place. Where they are the
        paper's, as the same checkpoints are averaged, nothing is translated again.
        """
        started, hyper = time.monotonic(), self.settings.hyper
        splits = {"dev": self.prepared.dev, "test": self.prepared.test}
        steps = [*hyper.last_steps]
        if hyper.last_steps == hyper.averaged_steps:
            translated = {"dev": (scores["dev"], self._written("dev")), "test": (scores["test"], self._written("test"))}
        else:
            steps, mean = averaging.last_mean(self.folder / "checkpoints", self.id, hyper.last_steps)
            model.load_state_dict(mean)
            weights, translated = determinism.weights_digest(model.state_dict()), {}
            with self.trial.opened(model) as opened:
                for name, split in splits.items():
                    watch = self._translating(f"{name}, mean of {len(steps)} checkpoints", len(split))
                    translated[name] = self.trial.score(opened, split, between=watch)[:2]
        found = {
            name: {**of, **self._length(hypotheses, splits[name].references)}
            for name, (of, hypotheses) in translated.items()
        }
        if not all(map(_is_finite, found.values())):
            self.progress.say(f"{self.settings.name}: by the mean of its last checkpoints perplexity is not finite")
            return None
        seconds = round(time.monotonic() - started, 3)
        return record.LastMean(steps=steps, weights=weights, seconds=seconds, dev=found["dev"], test=found["test"])

    def _length(self, hypotheses: Sequence[str], references: Sequence[str]) -> Named:
        """Tokens of translations over those of their references; nothing of a run that parses."""
        if self.settings.task.facts != TRANSLATION:
            return {}
        _, target = languages(self.settings.task.name)
        found = sacrebleu_score(hypotheses, references, target, are_tokens=self.corpus.in_tokens)
        return {LENGTH: found.hyp_len / found.ref_len}

    def _text(self) -> record.CorpusFacts:
        """The text that the run learned from and was scored on."""
        facts = record.CorpusFacts(
            name=self.corpus.name,
            sha256=self.corpus.sha256,
            n_train=len(self.prepared.train),
            n_dev=len(self.prepared.dev),
            n_test=len(self.prepared.test),
            dropped=self.prepared.train.dropped,
            repeats=cast("record.RepeatFacts", dict(self.prepared.repeats)),
        )
        if self.prepared.notes:
            facts["notes"] = [*self.prepared.notes]
        return facts

    def _note(self, diverged: NonFinite) -> None:
        """Say it, and write down all that it takes to look at the step again."""
        self.progress.say(f"{self.settings.name}: {diverged}")
        facts = {"what": diverged.what, "step": diverged.step, "seed": diverged.seed}
        atomic.write_json(self.folder / "diverged.json", facts | {"sentences": diverged.sentences})

    def _train(self, module: TranslationModule, log: loop.Log, conditions: dict[str, Any]) -> loop.Fitted:
        scale, steps = self.settings.scale, self.settings.hyper.steps

        def watch(kind: str, step: int, numbers: dict[str, float]) -> None:
            if kind == "train":
                shown = {"loss": numbers["loss"], "tokens/s": numbers["tokens_per_second"]}
                self.progress.step(step, **shown)

        self.progress.begin(self.settings.name, steps)
        fitted = self.trial.train(
            module,
            folder=self.folder / "checkpoints",
            run=self.id,
            log=log,
            every=loop.Every(log=scale.log_every, validate=scale.validate_every, checkpoint=scale.checkpoint_every),
            watch=watch,
            should_stop=self.should_stop,
            conditions=conditions,
            group=self.group,
        )
        if fitted.cost.steps < steps and not fitted.diverged:
            raise Stopped(f"{self.settings.name} stopped after step {fitted.cost.steps} of {steps}")
        return fitted

    def _evaluate(self, model: backends.Backend, name: str, split: Split) -> Scored:
        """What one split is worth; the translations go to `<name>.hyp`."""
        scored = self.trial.score(model, split, between=self._translating(name, len(split)))
        atomic.write_text(self.folder / f"{name}.hyp", "".join(f"{line}\n" for line in scored.hypotheses))
        return scored

    def _written(self, name: str) -> list[str]:
        return (self.folder / f"{name}.hyp").read_bytes().decode().split("\n")[:-1]

    def _translating(self, name: str, n: int) -> Callable[[int], None]:
        """What tells how many of the n sentences of a text are translated, and ends that where the run shall stop."""
        self.progress.begin(f"{self.settings.name}, {name}", n)

        def between(done: int) -> None:
            self.progress.step(done)
            if self.should_stop():
                raise Stopped(f"{self.settings.name} is trained; stopped while translating {name}")

        return between

    def _score_subset(self, hypotheses: Sequence[str]) -> Named | None:
        """The scores of those lines of test that are a test set of their own, from the translation of all."""
        if (subset := self.corpus.subset) is None:
            return None
        scores = self.trial.scores([hypotheses[i] for i in subset.places], subset.references)
        return {"name": subset.name, "n": len(subset.places), **scores}

    def _curve(self, kind: str) -> record.Curve:
        """The unsmoothed loss of the training batches or of dev, from the journal."""
        lines = [line for line in read(self.folder / "journal.jsonl") if line["kind"] == kind]
        finite = [line for line in lines if math.isfinite(line["nll"])]  # the last of a diverged run may not be
        return record.thinned({"step": [line["step"] for line in finite], "nll": [line["nll"] for line in finite]})

    def _describe(self, stamp: Provenance) -> str | None:
        """Write `run.json`, from which MLflow learns what the run is, and a changed command that this is another.

        Returns the digest of the list of claims that was there when the run began; None where nobody wrote it down.
        """
        settings = self.settings
        return write_run(
            self.folder,
            self.id,
            tags=self.tags,
            params={
                **written(vars(settings.hyper)),
                **self._chosen(),
                "data": self.prepared.data_hash[:16],
                "row_changes": relation(vars(settings.scale.base), vars(settings.hyper)),
                "row_changes_at_paper_size": relation(vars(BASE), vars(settings.paper_hyper)),
                "parameters_here": self.params["here"],
                "parameters_at_paper_size": self.params["paper_size"],
            },
            paper={name: settings.paper.get(name) for name in PRINTED_SCORES},
            order=settings.position,
            origin=origin(self.decides, stamp, settings.system),
            claims=None if self.last_step() else catalogue_digest(),  # what is half made began under another list
        )

    def _chosen(self) -> dict[str, str | int | float]:
        """What was chosen beside the row."""
        subwords = self.corpus.subwords(self.settings.scale.subwords(self.settings.task.name), asked=None)
        cut_to = gradient_norm(self.settings.system)
        return {
            "batch_tokens": self.settings.scale.batch_tokens,
            "fill": RECORDED[self.settings.scale.batch_by],
            "max_length": self.settings.scale.max_length,
            "rules": " ".join(self.settings.scale.rules),
            "pieces": subwords.kind,
            "vocab_size": subwords.size,
            "precision": self.settings.precision,
            "engine": self.settings.backend,
            "devices": self.settings.devices,
            "accumulate": self.settings.accumulate,
            **self.recipe.task.search.settings,
            **({"gradient_norm": cut_to} if cut_to is not None else {}),
            "threads": self.settings.threads,
            "claim": self.settings.scale.claim,
        }

    def _cost(self, cost: loop.TrainingCost, decode_seconds: float, peak_memory: int | None) -> record.Cost:
        train = self.prepared.train
        seen = TextSizes(
            sentences=cost.source_tokens / max(1.0, train.source.n_tokens / len(train)) or 1.0,
            source_tokens=cost.source_tokens,
            target_tokens=cost.target_tokens,
        )
        flops = training_flops(self.settings.hyper, self.prepared.tokenizer.size, seen, self.settings.system)
        on_gpu = torch.cuda.is_available()
        return record.Cost(
            steps=cost.steps,
            source_tokens=cost.source_tokens,
            target_tokens=cost.target_tokens,
            train_seconds=round(cost.seconds, 3),
            decode_seconds=round(decode_seconds, 3),
            tokens_per_second=round(cost.tokens_per_second, 1),
            padding=round(cost.padding, 5),
            flops=flops,
            peak_memory_bytes=peak_memory,
            gpu_hours=round(cost.seconds * self.settings.devices / 3600, 4) if on_gpu else 0.0,
        )


def made_for_gpu(model: Any, settings: Settings, say: Callable[[str], object]) -> tuple[str, ...]:
    """Have the layers compiled where a GPU reads packed batches; what is special in the arithmetic.

    Padded batches have nearly each a shape of its own, for which the compiler begins anew: 20 times the time of a step
    (docs/performance.md). So has attention that pads, where there is no kernel for the row. Where there is no compiler
    it is said, and the layers are called as they are.
    """
    if not torch.cuda.is_available():
        return ()
    compiled.begin_run()
    if reason := compiled.why_not():
        say(
            f"Nothing is compiled ({reason}): an update takes longer, by a sixth where it was measured. Usually a C "
            "compiler or Python's headers are missing: install gcc and python3-dev."
        )
    if not reads_ragged(settings.system):
        return ()
    hyper = settings.hyper
    fits = max(hyper.d_k, hyper.d_v) <= WIDEST and not hyper.attention_dropout
    if reason or not fits or settings.precision != "bf16":
        return (PACKED,)
    compile_layers(model)
    return COMPILED, PACKED


COMPILED, PACKED = "layers: compiled", "batches: packed"


def _is_finite(scores: Named) -> bool:
    return math.isfinite(cast("float", scores["ppl"]))


def _note_scores(journal: Journal, scores: Scores, last_mean: record.LastMean | None) -> None:
    """All numbers of both splits, by both weights, in one line: the journal keeps one of each kind and step."""
    by_mean = cast("dict[str, Named]", last_mean or {})
    of_mean = {name: by_mean[split] for name, split in LAST_MEAN.items() if split in by_mean}
    numbers = {
        f"{split}_{name}": value
        for split, score in (cast("dict[str, Named]", scores) | of_mean).items()
        for name, value in score.items()
        if isinstance(value, float)
    }
    journal.append("final", 0, **numbers)
