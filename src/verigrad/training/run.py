"""A recipe -> a finished run directory: check everything cheap first, then load, measure, learn,
measure again."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy
import torch

from verigrad.algorithms import presets
from verigrad.algorithms.describe import header
from verigrad.config import Recipe, read_recipe, write_recipe
from verigrad.errors import ProblemError, RecipeError, RunDirectoryError
from verigrad.objective import Objective
from verigrad.problems import ProblemSet, load_problems, render_all
from verigrad.rollout.native import NativeEngine
from verigrad.runlog import Listener, RunReader, RunWriter, machine_record
from verigrad.training.checkpoint import TrainerState, find_checkpoint, read_state, restore
from verigrad.training.evaluate import evaluate, measure
from verigrad.training.grpo import grpo
from verigrad.training.keep import save
from verigrad.training.load import check_model_path, model_facts
from verigrad.training.policy import Policy, make_policy, needs_reference
from verigrad.training.session import Interrupt, Session
from verigrad.training.sft import cold_start
from verigrad.training.tripwires import note_error, watch_start
from verigrad.training.update import make_optimizer
from verigrad.types import Engine, Problem, Verifier
from verigrad.verifiers import make_verifier
from verigrad.verifiers.registry import Mode


@dataclass(frozen=True)
class RunSummary:
    """What a finished run came to; ``verigrad show`` tells the rest."""

    run_dir: Path
    steps: int
    state: str
    fingerprint: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


@dataclass(frozen=True)
class Plan:
    """A recipe whose parts all exist and fit: made before any model is loaded."""

    recipe: Recipe
    objective: Objective
    verifier: Verifier
    strict: Verifier
    lenient: Verifier
    problems: ProblemSet
    notes: tuple[str, ...]


def plan(recipe: Recipe) -> Plan:
    """Check a recipe whole without loading a model. Raises UsageError's family (exit code 2) for
    what can't work."""
    if recipe.backend.name != "native":
        raise RecipeError(
            f"backend.name = {recipe.backend.name!r}: `verigrad train` runs the native loop; set "
            "backend.name = 'native'."
        )
    objective = presets.resolve(recipe.objective.preset, recipe.objective_overrides)
    check_trainable(objective, recipe)
    check_model_path(recipe.model)
    strict, lenient = _verifier(recipe, "strict"), _verifier(recipe, "lenient")
    verifier = strict if recipe.verifier.mode == "strict" else lenient
    problems = load_problems(
        recipe.problems, seed=recipe.training.seed, heldout=recipe.evaluation.problems
    )
    problems, dropped = _verifiable(problems, verifier, recipe)
    training = recipe.training
    notes = [
        *problems.report, *dropped, *header(objective).splitlines(),
        *(
            f"warning: {w}"
            for w in presets.warnings_for(
                objective,
                updates_per_rollout=training.updates_per_rollout * training.passes_per_rollout,
            )
        ),
        *_batch_notes(recipe),
    ]  # fmt: skip
    return Plan(recipe, objective, verifier, strict, lenient, problems, tuple(notes))


def check_trainable(objective: Objective, recipe: Recipe) -> None:
    """Refuse what this trainer can't compute, naming the axis: nothing is silently left out."""
    faults = [
        (objective.data != "rollouts", "data", objective.data, "'rollouts'"),
        (objective.baseline in ("critic", "greedy"), "baseline", objective.baseline,
         "'group_mean' or 'leave_one_out'"),
        (objective.entropy != "none", "entropy", objective.entropy, "'none'"),
        (objective.kl == "k1_in_reward" and objective.kl_coef > 0, "kl", objective.kl,
         "'k3' or 'k2'"),
        (objective.positive_nll > 0, "positive_nll", objective.positive_nll, "0"),
        (objective.retire_pass_rate is not None, "retire_pass_rate", objective.retire_pass_rate,
         "'none'"),
        (
            # The reference of adapters is the model without them, not the one after the start.
            needs_reference(objective) and recipe.model.lora is not None
            and recipe.cold_start.when != "never",
            "kl", objective.kl, "'none' where LoRA and a cold start meet",
        ),
        (
            objective.reference != "frozen" and recipe.model.lora is not None,
            "reference", objective.reference, "'frozen' with LoRA",
        ),
    ]  # fmt: skip
    for wrong, name, value, remedy in faults:
        if wrong:
            raise RecipeError(
                f"objective.{name} = {value!r} is not computed by `verigrad train`. Set "
                f"objective.{name} = {remedy}."
            )


def _verifier(recipe: Recipe, mode: Mode) -> Verifier:
    return make_verifier(recipe.verifier.name, mode=mode, options=dict(recipe.verifier.options))


def _verifiable(
    problems: ProblemSet, verifier: Verifier, recipe: Recipe
) -> tuple[ProblemSet, list[str]]:
    """Refuse, or drop and count, problems whose gold answer the verifier can't use."""

    def fit(some: Sequence[Problem]) -> tuple[tuple[Problem, ...], list[str]]:
        good: list[Problem] = []
        bad: list[str] = []
        for problem in some:
            reason = verifier.check_gold(problem)
            if reason is None:
                good.append(problem)
            else:
                bad.append(f"problem {problem.id!r}: {reason}")
        return tuple(good), bad

    train, bad_train = fit(problems.train)
    heldout, bad_heldout = fit(problems.heldout)
    bad = bad_train + bad_heldout
    if not bad:
        return problems, []
    facts = (
        f"{len(bad)} of {len(problems.train) + len(problems.heldout)} gold answers can't be used "
        f"by {verifier.name}"
    )
    if recipe.problems.unverifiable == "error" or not train or not heldout:
        raise ProblemError(
            f"{facts}. The first: {bad[0]} Mend the data, choose another verifier, or set "
            "problems.unverifiable = 'drop'."
        )
    return replace(problems, train=train, heldout=heldout), [f"{facts}; they are left out"]


def _batch_notes(recipe: Recipe) -> list[str]:
    rollout, training = recipe.rollout, recipe.training
    return [
        f"batch: {rollout.prompts_per_step} prompts x {rollout.group_size} completions = "
        f"{rollout.prompts_per_step * rollout.group_size} a step, {training.updates_per_rollout} "
        f"update(s) x {training.passes_per_rollout} pass(es), learning rate "
        f"{training.learning_rate:g} ({training.schedule})",
    ]


def train(
    recipe: Recipe, *, run_dir: str | Path, resume: bool = False, force: bool = False,
    listeners: Sequence[Listener] = (),
) -> RunSummary:  # fmt: skip
    """Run a recipe to its end in ``run_dir`` and return what it came to.

    ``resume`` continues exactly where the newest whole checkpoint stands; ``force`` deletes an
    earlier run. On Ctrl-C the step ends, is saved, and KeyboardInterrupt is raised. Raises
    UsageError's family before anything is loaded, and TrainingError's while it runs.
    """
    run_dir = Path(run_dir)
    if not resume:
        _refuse_existing(run_dir, force)
    made = plan(recipe)
    checkpoint, torn = find_checkpoint(run_dir) if resume else (None, [])
    if recipe.training.threads is not None:
        torch.set_num_threads(recipe.training.threads)
    seed_everything(recipe.training.seed)
    log = _open(run_dir, checkpoint, resume=resume, force=force, listeners=listeners)
    steps = recipe.training.steps
    step = 0
    with Interrupt() as interrupt:
        try:
            log.recipe(write_recipe(recipe))
            log.status("running", step=0, steps=steps)
            for line in (*made.notes, *torn):
                log.note(line)
            if resume and checkpoint is None:
                log.note("nothing was saved yet: starting from the beginning")
            run = _start(made, log, interrupt, checkpoint)
            step = run.state.step
            before, after = _learn(run)
            step = run.state.step
        except KeyboardInterrupt as stop:
            log.status("interrupted", step=_saved_step(run_dir), steps=steps, message=str(stop))
            raise
        except Exception as error:
            note_error(log, error, step=step)
            log.status(
                "failed",
                step=_saved_step(run_dir),
                steps=steps,
                message=f"{type(error).__name__}: {error}",
            )
            raise
    log.status("done", step=step, steps=steps)
    return RunSummary(run_dir, step, "done", run.state.fingerprint, before, after)


def _saved_step(run_dir: Path) -> int:
    checkpoint = RunReader(run_dir).checkpoint()
    return int(checkpoint.name.removeprefix("step-")) if checkpoint is not None else 0


def _refuse_existing(run_dir: Path, force: bool) -> None:
    if run_dir.is_dir() and any(run_dir.iterdir()) and not force:
        raise RunDirectoryError(
            f"run directory {run_dir} exists already. Resume it with --resume, overwrite it with "
            "--force, or choose another with --out."
        )


def _open(
    run_dir: Path,
    checkpoint: Path | None,
    *,
    resume: bool,
    force: bool,
    listeners: Sequence[Listener],
) -> RunWriter:
    if resume and (run_dir / "recipe.toml").exists():
        state = read_state(checkpoint) if checkpoint else None
        return RunWriter.reopen(
            run_dir,
            step=state.step if state else 0,
            cold_started=state.cold_started if state else False,
            listeners=listeners,
        )
    return RunWriter.create(run_dir, force=force or resume, listeners=listeners)


def _start(made: Plan, log: RunWriter, interrupt: Interrupt, checkpoint: Path | None) -> Session:
    """Load the model, render the prompts, make engine and optimiser, and put a checkpoint back
    where there is one."""
    recipe = made.recipe
    log.note(f"loading {recipe.model.path}")
    policy = make_policy(recipe, made.objective)
    train_prompts, counts = render_all(made.problems.train, recipe.problems, policy.tokenizer)
    heldout, _ = render_all(made.problems.heldout, recipe.problems, policy.tokenizer)
    for line in (
        *policy.notes,
        _prompt_note(counts),
        "one prompt, as the model reads it:",
        train_prompts[0].text,
    ):
        log.note(line)
    optimizer = make_optimizer(policy, recipe.training)
    run = Session(
        recipe=recipe, objective=made.objective, policy=policy, optimizer=optimizer,
        engine=make_engine(policy, recipe), verifier=made.verifier, strict=made.strict,
        lenient=made.lenient,
        problems=made.problems, prompts=train_prompts, heldout=heldout, log=log,
        interrupt=interrupt,
        state=TrainerState(step=0, version=0, windows=0, best=None, fingerprint=""),
    )  # fmt: skip
    log.environment({
        **machine_record(), "model": model_facts(policy.model, policy.tokenizer),
        "precision": policy.precision, "device": policy.device.type,
        "threads": torch.get_num_threads(), "seed": recipe.training.seed,
        "problems": made.problems.fingerprint, "num_train": len(train_prompts),
        "num_heldout": len(heldout), "objective": header(made.objective),
    })  # fmt: skip
    if checkpoint is not None:
        run.state = restore(checkpoint, policy, optimizer)
        run.engine.load(policy.weights(), version=run.state.version)
        log.note(f"resumed after step {run.state.step} from {checkpoint.name}")
    watch_start(run)
    return run


def _prompt_note(counts: Any) -> str:
    return (
        f"{counts['num_prompts']} prompts, longest {counts['max_tokens']} tokens, "
        f"{counts['num_dropped']} dropped, {counts['num_truncated']} cut at the left"
    )


def make_engine(policy: Policy, recipe: Recipe) -> Engine:
    """The engine of a recipe, holding the policy's present weights."""
    if recipe.rollout.engine != "native":
        raise RecipeError(
            f"rollout.engine = {recipe.rollout.engine!r}: training in one process uses "
            "rollout.engine = 'native'."
        )
    model: Any = policy.model
    if policy.lora:
        # The engine knows plain models: it gets a merged copy, and merged weights from then on.
        model = copy.deepcopy(model).merge_and_unload()
    engine = NativeEngine(
        model, policy.tokenizer, precision=policy.precision, max_rows=recipe.rollout.max_rows
    )
    engine.load(policy.weights(), version=0)
    return engine


def _learn(run: Session) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Before, cold start, GRPO, after: each part that a resumed run has behind it already is left
    out."""
    done = RunReader(run.log.path).evaluations()
    before, steps = done.get("before"), run.recipe.training.steps
    if run.state.step == 0 and not run.state.cold_started:
        before = before or evaluate(run, "before", step=0)
        if cold_start(run):
            evaluate(run, "after-cold-start", step=0)
            run.state = replace(run.state, fingerprint=run.policy.fingerprint()[:16])
            save(run)
    if run.state.step < steps:
        grpo(run)
    elif run.state.step > steps:
        raise RecipeError(
            f"training.steps = {steps}, but the run has {run.state.step} steps behind it. Set more "
            "steps to go on."
        )
    return before, evaluate(run, "after", step=run.state.step)


def seed_everything(seed: int) -> None:
    """Seed the global generators. Sampling and drawing use generators of their own, keyed by
    step."""
    random.seed(seed)
    numpy.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def evaluate_checkpoint(
    path: str | Path, *, problems: int | None = None, recipe: Recipe | None = None,
    listeners: Sequence[Listener] = (),
) -> dict[str, Any]:  # fmt: skip
    """Measure a run's newest checkpoint, or one checkpoint folder, on held-out problems: the
    evaluation record.

    Without ``recipe`` the run's own is used. ``problems`` changes how many held-out problems are
    asked.
    """
    folder, recipe = _trained(Path(path), recipe)
    changes: dict[str, Any] = {
        "model": recipe.model.model_copy(update={"path": str(folder), "lora": None})
    }
    if problems is not None:
        changes["evaluation"] = recipe.evaluation.model_copy(update={"problems": problems})
    recipe = recipe.model_copy(update=changes)
    made = plan(recipe)
    policy = make_policy(recipe, made.objective)
    heldout, _ = render_all(made.problems.heldout, recipe.problems, policy.tokenizer)

    def progress(record: dict[str, Any]) -> None:
        for listener in listeners:
            listener("progress", record)

    record = measure(
        make_engine(policy, recipe),
        heldout,
        recipe,
        strict=made.strict,
        lenient=made.lenient,
        progress=progress,
    )
    return {**record, "name": str(folder), "step": 0}


def _trained(path: Path, recipe: Recipe | None) -> tuple[Path, Recipe]:
    """The model folder behind a run or checkpoint, and the recipe it was trained with."""
    if (path / "recipe.toml").exists():
        folder, torn = find_checkpoint(path)
        if folder is None:
            raise RunDirectoryError(f"run {path} has no whole checkpoint. {' '.join(torn)}".strip())
        return folder, recipe or read_recipe(path / "recipe.toml")
    if not (path / "config.json").exists():
        raise RunDirectoryError(
            f"{path} is neither a run (recipe.toml) nor a model folder (config.json)."
        )
    above = path.parent.parent / "recipe.toml"
    if recipe is None and not above.exists():
        raise RunDirectoryError(f"{path} belongs to no run; say how to measure it with a recipe.")
    return path, recipe or read_recipe(above)
