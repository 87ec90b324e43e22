"""Makes one run, from its settings and folder to its record: train, average, decode, score."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, NamedTuple, cast

import torch

from repro.claims.catalogue import catalogue_digest
from repro.corpora.parallel_text import languages
from repro.decoding.bleu import sacrebleu_score
from repro.model import compiled
from repro.model.attention import WIDEST
from repro.model.build import compile_layers, gradient_norm, reads_ragged
from repro.model.config import BASE, written
from repro.model.cost import TextSizes, training_flops
from repro.results import record
from repro.results.labels import relation
from repro.results.provenance import Provenance, provenance, system_text
from repro.results.record import LAST_MEAN, LENGTH, SPLITS, TRANSLATION, Named, Record, Scores, without_value
from repro.runs import determinism
from repro.runs.load import TOKENIZER
from repro.runs.outputs import note_beside
from repro.runs.progress import Watched
from repro.runs.run_dir import RunDir, changes
from repro.storage import atomic
from repro.storage.journal import Journal, read, read_all
from repro.storage.lease import Lease, Superseded
from repro.tracking.client import Tracker
from repro.tracking.mirror import Mirror
from repro.tracking.run_folder import PRINTED_SCORES, RECORD, write_run
from repro.training import checkpoint, cpu_tuning, loop, stages
from repro.training.group import Group
from repro.training.module import TranslationModule
from repro.training.replay_check import planned_order
from repro.training.run_spec import RECORDED, RunSpec
from repro.training.stages import Scored


class Silence:
    """The log of the processes that do not write, in place of a journal."""

    def __contains__(self, line: tuple[str, int]) -> bool:
        return False

    def __len__(self) -> int:
        return 0

    def append(self, kind: str, step: int, **values: float) -> None:
        pass

    def sync(self) -> None:
        pass


class Evaluated(NamedTuple):
    """What the held-out texts scored with one set of weights, and its digest."""

    dev: Scored
    test: Scored
    weights: str


class Stopped(Exception):
    """The run was asked to stop; it has left a checkpoint and will go on from it."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run being made: its folder, and what tracks it, shows its progress and may stop it."""

    dir: RunDir
    tracker: Tracker
    progress: Watched
    should_stop: Callable[[], bool]
    group: Group | None = None  # the processes that share each update; None: this one alone

    @property
    def is_first(self) -> bool:
        """Whether this process writes, decodes and scores: only the first of several does."""
        return self.group is None or self.group.is_first

    def agreed_finished(self) -> Record | None:
        """The finished record as the first process sees it, in every process: others may not see the folder.

        Raises ValueError in a process that would make a different run from the first.
        """
        assert self.group is not None
        done = self.dir.finished() if self.is_first else None
        first, found = self._told([self.dir.decides, done and asdict(done)])
        if different := changes(first, self.dir.decides):
            raise ValueError(
                f"{str(self.group.peer).capitalize()} would make a different run from the first process: {different}. "
                "Start the same command, with the same code and the same text, on each node."
            )
        return Record(**found) if found else None

    def _told(self, word: Any) -> Any:
        """The `word` of the first process, in every process of this run."""
        assert self.group is not None
        try:
            return self.group.told(word, self.should_stop)
        except InterruptedError:
            raise Stopped(f"{self.dir.name}: stopped while the first process works alone") from None

    def execute(self) -> Record:
        """Train or resume, evaluate, write `record.json`. Other processes only train, and are told the record.

        Raises `Stopped` if asked to stop before the end, BlockingIOError if another process makes this run.
        """
        tuned = stages.set_up(self.dir.spec)
        stamp = provenance(system=self.dir.spec.system)
        memory = cpu_tuning.PeakMemory()
        module = stages.new_module(self.dir.spec, self.dir.prepared)
        arithmetic = (*tuned, *made_for_gpu(module.model, self.dir.spec, self.progress.say))
        conditions = determinism.conditions(stamp, self.dir.spec.devices, arithmetic)
        if not self.is_first:
            self._train(module, Silence(), conditions)
            return Record(**self._told(None))
        path = self.dir.folder / "journal.jsonl"
        with Lease(self.dir.folder) as lease, Journal(path, attempt=lease.number, check=lease.check) as journal:
            claims = self._describe(stamp)
            if self.group is None and (done := self.dir.finished()):
                return done  # another process made it while this one waited
            where = stamp["device"] if torch.cuda.is_available() else f"the processor, {stamp['device']}"
            self.progress.say(f"{self.dir.name}: run {self.dir.id} on {where}")
            atomic.sweep(self.dir.folder, alone=True)
            self.dir.prepared.tokenizer.save(self.dir.folder / TOKENIZER)  # by which the run is used without the cache
            mirror = Mirror(self.tracker, self.dir.folder)
            outcome = "FAILED"
            try:
                done = self._train_and_evaluate(module, journal, stamp, mirror, conditions, memory)
                done = replace(done, claims=claims)
                journal.sync()
                lease.check()
                done.save(self.dir.folder / RECORD)  # before waiting for MLflow
                outcome = "FINISHED" if done.status == "finished" else "FAILED"
            except (Stopped, Superseded) as left:
                outcome = "KILLED" if isinstance(left, Stopped) else "RUNNING"  # to be resumed; by another process
                raise
            finally:
                mirror.close(outcome)
            if mirror.run_id != done.stamp["mlflow_run"]:  # known only now: the run was shorter than MLflow's start
                done = replace(done, stamp={**done.stamp, "mlflow_run": mirror.run_id})
                lease.check()
                done.save(self.dir.folder / RECORD)
            note_beside(self.dir, done, self.tracker, self.progress.say, self._translating)  # optional, so last
            # both averages are made: other checkpoints are no longer needed
            checkpoint.prune(self.dir.folder / "checkpoints", keep=self.dir.spec.hyper.averaged_steps)
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
        run, spec, found, last_mean = self.dir, self.dir.spec, None, None
        # 1. train, from the newest checkpoint on
        begun_at, machine = run.last_step(), conditions["arithmetic"]
        fitted = self._train(module, journal, conditions)
        if fitted.cost.steps > begun_at:
            machine = self._as_it_was(machine)
        # 2. translate and score with the averaged weights, then with the mean of the last checkpoints
        started = time.monotonic()
        if diverged := fitted.diverged:
            self.progress.say(f"{run.name}: {diverged}")  # and what is needed to look at the step again
            facts = {"what": diverged.what, "step": diverged.step, "seed": diverged.seed}
            atomic.write_json(run.folder / "diverged.json", facts | {"sentences": diverged.sentences})
        else:
            weights = checkpoint.averaged(run.folder / "checkpoints", run.id, spec.hyper.averaged_steps)
            found = self._evaluate(module.model, weights)
        if found:
            for split in SPLITS:
                lines = getattr(found, split).hypotheses
                atomic.write_text(run.folder / f"{split}.hyp", "".join(f"{line}\n" for line in lines))
        cost = self._cost(fitted.cost, time.monotonic() - started, memory.bytes())
        if found:
            last_mean = self._score_last_mean(module.model, found)
        # 3. what came out
        nothing = without_value(run.task.facts)
        dev, test = (found.dev.scores, found.test.scores) if found else (nothing, {**nothing})
        scores = Scores(dev=dev, test=test)
        _note_scores(journal, scores, last_mean)
        planned = stages.planned_data(spec, run.prepared).plan.updates()
        return Record(
            **run.names,
            run=run.id,
            seed=spec.seed,
            pair=run.task.name,
            corpus=self._text(),
            tokenizer={"sha256": run.prepared.tokenizer.sha256, "size": run.prepared.tokenizer.size},
            hyper=asdict(spec.hyper),
            settings={**self._chosen(), "machine": machine},
            scores=scores,
            curves={"train": self._curve("train"), "dev": self._curve("dev")},
            cost=cost,
            stamp=record.Stamp(**stamp, mlflow_run=mirror.run_id),
            status="finished" if found else "diverged",
            determinism=determinism.determinism(
                fitted.reproducibility,
                plan=planned_order(islice(planned, fitted.cost.steps), spec.shares),
                shares=fitted.cost.steps * spec.shares,
                lines=read_all(run.folder / "journal.jsonl"),
                weights=found.weights if found else None,
            ),
            task=None if run.task.facts == TRANSLATION else run.task.facts,
            system=system_text(spec.system) or None,
            last_mean=last_mean,
        )

    def _train(self, module: TranslationModule, log: loop.Log, conditions: dict[str, Any]) -> loop.Fitted:
        scale, steps = self.dir.scale, self.dir.spec.hyper.steps

        def watch(kind: str, step: int, numbers: dict[str, float]) -> None:
            if kind == "train":
                self.progress.step(step, **{"loss": numbers["loss"], "tokens/s": numbers["tokens_per_second"]})

        self.progress.begin(self.dir.name, steps)
        fitted = stages.train(
            self.dir.spec,
            self.dir.prepared,
            module,
            folder=self.dir.folder / "checkpoints",
            run=self.dir.id,
            log=log,
            every=loop.Every(log=scale.log_every, validate=scale.validate_every, checkpoint=scale.checkpoint_every),
            watch=watch,
            should_stop=self.should_stop,
            conditions=conditions,
            group=self.group,
        )
        if fitted.cost.steps < steps and not fitted.diverged:
            raise Stopped(f"{self.dir.name} stopped after step {fitted.cost.steps} of {steps}")
        return fitted

    def _as_it_was(self, machine: str) -> str:
        """The arithmetic, without the mark for compiled layers if compilation was given up."""
        settings = machine.split(", ")
        if COMPILED not in settings or not (reason := compiled.given_up()):
            return machine
        self.progress.say(f"{self.dir.name} ran without compiled layers, and its record says so: {reason}.")
        return ", ".join(one for one in settings if one != COMPILED)

    def _evaluate(self, model: Any, weights: Mapping[str, torch.Tensor], about: str = "") -> Evaluated | None:
        """Score dev and test with these weights, which become the model's; None where a perplexity is not finite."""
        model.load_state_dict(weights)
        digest, prepared = determinism.weights_digest(model.state_dict()), self.dir.prepared
        with stages.opened(self.dir.spec, model) as opened:
            dev, test = (
                stages.score(self.dir.spec, prepared, opened, split, self._translating(f"{name}{about}", len(split)))
                for name, split in (("dev", prepared.dev), ("test", prepared.test))
            )
        if not all(math.isfinite(cast("float", one.scores["ppl"])) for one in (dev, test)):
            self.progress.say(f"{self.dir.name}{about or ' diverged'}: the perplexity of held-out text is not finite")
            return None
        return Evaluated(dev, test, digest)

    def _translating(self, name: str, n: int) -> Callable[[int], None]:
        """A callback that shows how many of n sentences are translated, and raises `Stopped` if the run is to stop."""
        self.progress.begin(f"{self.dir.name}, {name}", n)

        def between(done: int) -> None:
            self.progress.step(done)
            if self.should_stop():
                raise Stopped(f"{self.dir.name} is trained; stopped while translating {name}")

        return between

    def _score_last_mean(self, model: Any, found: Evaluated) -> record.LastMean | None:
        """Scores of dev and test with the mean of the last checkpoints; None where they are not finite.

        This comes after the scores of the paper's weights, and replaces those weights in the model. Where both average
        the same checkpoints, nothing is translated again.
        """
        started, hyper = time.monotonic(), self.dir.spec.hyper
        steps = [*hyper.last_steps]
        if hyper.last_steps != hyper.averaged_steps:
            steps, weights = checkpoint.last_mean(self.dir.folder / "checkpoints", self.dir.id, hyper.last_steps)
            again = self._evaluate(model, weights, f", mean of {len(steps)} checkpoints")
            if again is None:
                return None
            found = again
        dev = {**found.dev.scores, **self._length(found.dev.hypotheses, self.dir.prepared.dev.references)}
        test = {**found.test.scores, **self._length(found.test.hypotheses, self.dir.prepared.test.references)}
        seconds = round(time.monotonic() - started, 3)
        return record.LastMean(steps=steps, weights=found.weights, seconds=seconds, dev=dev, test=test)

    def _length(self, hypotheses: Sequence[str], references: Sequence[str]) -> Named:
        """Ratio of translation tokens to reference tokens; empty for a run that parses."""
        if self.dir.task.facts != TRANSLATION:
            return {}
        _, target = languages(self.dir.task.name)
        found = sacrebleu_score(hypotheses, references, target, are_tokens=self.dir.corpus.in_tokens)
        return {LENGTH: found.hyp_len / found.ref_len}

    def _text(self) -> record.CorpusFacts:
        corpus, prepared = self.dir.corpus, self.dir.prepared
        facts = record.CorpusFacts(
            name=corpus.name,
            sha256=corpus.sha256,
            n_train=len(prepared.train),
            n_dev=len(prepared.dev),
            n_test=len(prepared.test),
            dropped=prepared.train.dropped,
            repeats=cast("record.RepeatFacts", dict(prepared.repeats)),
        )
        if prepared.notes:
            facts["notes"] = [*prepared.notes]
        return facts

    def _curve(self, kind: str) -> record.Curve:
        """The unsmoothed loss of the training batches or of dev, from the journal."""
        lines = [line for line in read(self.dir.folder / "journal.jsonl") if line["kind"] == kind]
        finite = [line for line in lines if math.isfinite(line["nll"])]  # the last of a diverged run may not be
        return record.thinned({"step": [line["step"] for line in finite], "nll": [line["nll"] for line in finite]})

    def _describe(self, stamp: Provenance) -> str | None:
        """Write `run.json`, which tells MLflow what the run is, and a later command whether it would make another.

        Returns the digest of the list of claims as it was when the run began; None where it was not recorded.
        """
        run, spec = self.dir, self.dir.spec
        return write_run(
            self.dir.folder,
            self.dir.id,
            tags=self.dir.tags,
            params={
                **written(vars(spec.hyper)),
                **self._chosen(),
                "data": self.dir.prepared.data_hash[:16],
                "row_changes": relation(vars(run.scale.base), vars(spec.hyper)),
                "row_changes_at_paper_size": relation(vars(BASE), vars(run.paper_hyper)),
                "parameters_here": self.dir.names["params"]["here"],
                "parameters_at_paper_size": self.dir.names["params"]["paper_size"],
            },
            paper={name: run.paper.get(name) for name in PRINTED_SCORES},
            order=run.position,
            origin={"decides": self.dir.decides, "commit": stamp["commit"]},
            claims=None if self.dir.last_step() else catalogue_digest(),  # a resumed run may have had another
        )

    def _chosen(self) -> dict[str, str | int | float]:
        """The settings beside the row's hyper-parameters."""
        run, spec, scale = self.dir, self.dir.spec, self.dir.scale
        subwords = run.corpus.subwords(scale.subwords(run.task.name), asked=None)
        cut_to = gradient_norm(spec.system)
        return {
            "batch_tokens": scale.batch_tokens,
            "fill": RECORDED[scale.batch_by],
            "max_length": scale.max_length,
            "rules": " ".join(scale.rules),
            "pieces": subwords.kind,
            "vocab_size": subwords.size,
            "precision": spec.precision,
            "engine": spec.backend,
            "devices": spec.devices,
            "accumulate": spec.accumulate,
            **run.task.search.settings,
            **({"gradient_norm": cut_to} if cut_to is not None else {}),
            "threads": spec.threads,
            "claim": scale.claim,
        }

    def _cost(self, cost: loop.TrainingCost, decode_seconds: float, peak_memory: int | None) -> record.Cost:
        train = self.dir.prepared.train
        seen = TextSizes(
            sentences=cost.source_tokens / max(1.0, train.source.n_tokens / len(train)) or 1.0,
            source_tokens=cost.source_tokens,
            target_tokens=cost.target_tokens,
        )
        flops = training_flops(self.dir.spec.hyper, self.dir.prepared.tokenizer.size, seen, self.dir.spec.system)
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
            gpu_hours=round(cost.seconds * self.dir.spec.devices / 3600, 4) if on_gpu else 0.0,
        )


def made_for_gpu(model: Any, spec: RunSpec, say: Callable[[str], object]) -> tuple[str, ...]:
    """Compile the layers where a GPU reads packed batches; returns what is special in the arithmetic.

    Nearly every padded batch has a shape of its own, for which the layers are compiled again: 20 times the time of a
    step (docs/performance.md). The same holds for attention that pads, where no kernel fits the row. Where there is no
    compiler, `say` is told so, and the layers run as they are.
    """
    if not torch.cuda.is_available():
        return ()
    reason = compiled.why_not()
    compiled.begin_run()  # after the trial, which would count as something of this run that was compiled
    if reason:
        say(
            f"Nothing is compiled ({reason}): an update takes longer, by a sixth where it was measured. Usually a C "
            "compiler or Python's headers are missing: install gcc and python3-dev."
        )
    if not reads_ragged(spec.system):
        return ()
    hyper = spec.hyper
    fits = max(hyper.d_k, hyper.d_v) <= WIDEST and not hyper.attention_dropout
    if reason or not fits or spec.precision != "bf16":
        return (PACKED,)
    compile_layers(model)
    return COMPILED, PACKED


COMPILED, PACKED = "layers: compiled", "batches: packed"


def _note_scores(journal: Journal, scores: Scores, last_mean: record.LastMean | None) -> None:
    """Write all scores of both splits and both weights as one line: the journal keeps one for each kind and step."""
    by_mean, found = cast("dict[str, Named]", last_mean or {}), cast("dict[str, Named]", scores)
    found = found | {name: by_mean[split] for name, split in LAST_MEAN.items() if split in by_mean}
    of = {f"{split}_{name}": value for split, score in found.items() for name, value in score.items()}
    journal.append("final", 0, **{name: value for name, value in of.items() if isinstance(value, float)})
