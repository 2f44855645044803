"""Many trainings of one graph or hypergraph side by side."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import signal
import threading
import warnings
from typing import Any, Generic, Iterator, Sequence, TypeVar, overload

import numpy as np
from sklearn.base import clone

from . import _checks, _core
from .classifier import Interrupted, SheafClassifier, UnusedSheaf, _Plan
from .dataset import Dataset
from .hypergraph import Hypergraph, HypergraphClassifier

C = TypeVar("C", bound="SheafClassifier | HypergraphClassifier")

_FIGURES = (
    "best_epoch", "epochs", "stop_reason", "validation_loss", "validation_accuracy", "test_accuracy", "test_nll", "test_ece",
    "test_roc_auc", "test_average_precision", "test_macro_f1", "test_brier", "epoch_seconds",
)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FitMany(Generic[C]):
    """The classifiers that :func:`fit_many` trained, ordered by split and then by seed."""

    classifiers: list[C]
    #: an array for each quantity, with an entry for each classifier: split, seed, and the figures of ``result_``; also
    #: ``pandas.DataFrame(many.table)``
    table: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.classifiers)

    def __iter__(self) -> Iterator[C]:
        return iter(self.classifiers)

    def __getitem__(self, number: int) -> C:
        return self.classifiers[number]

    def __repr__(self) -> str:
        """The table, a row for each training, and means with standard deviations."""
        columns = ("split", "seed", "best_epoch", "validation_accuracy", "test_accuracy")
        lines = ["".join(f"{name:>21}" for name in columns)]
        for row in zip(*(self.table[name] for name in columns)):
            lines.append("".join(f"{value:>21.4f}" if isinstance(value, float) else f"{value:>21}" for value in row))
        for name in columns[3:]:
            values = self.table[name]
            lines.append(f"{name}: {values.mean():.4f} +- {values.std():.4f}")
        return "\n".join(lines)


@overload
def fit_many(
    data: Dataset,
    classifier: SheafClassifier | None = None,
    *,
    splits: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
    device: str | None = None,
    threads: int = 0,
) -> FitMany[SheafClassifier]: ...


@overload
def fit_many(
    data: Hypergraph,
    classifier: HypergraphClassifier | None = None,
    *,
    splits: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
    device: str | None = None,
    threads: int = 0,
) -> FitMany[HypergraphClassifier]: ...


def fit_many(
    data: Dataset | Hypergraph,
    classifier: SheafClassifier | HypergraphClassifier | None = None,
    *,
    splits: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
    device: str | None = None,
    threads: int = 0,
) -> FitMany[Any]:
    """Trains a classifier on several splits with several seeds, side by side. On the CPU each training has a thread of its own,
    and its result is equal to a single fit, to the bit. On a CUDA device all trainings are one batch.

    :param data: a Dataset, or a Hypergraph
    :param classifier: classifier with the parameters; None: ``SheafClassifier()``, or for a Hypergraph ``HypergraphClassifier()``.
        ``search``, ``progress`` and ``callback`` must be unset: they belong to single fits
    :param splits: indices of the splits; None: all
    :param seeds: values of ``random_state``; every split is trained with each of them. None: the classifier's own
    :param device: device to train on, as in SheafClassifier; None: the classifier's own. Hypergraphs are trained on the CPU
    :param threads: number of trainings side by side on the CPU; 0: one for each processor
    :raises ValueError: an argument is not allowed; the message names the argument, its value and the limit
    :raises RuntimeError: a training diverged; the message names its split and seed
    :raises KeyboardInterrupt: Ctrl-C was pressed. With ``on_interrupt="keep"`` you get all classifiers whose training has begun
        instead, with their best parameters so far, and a warning

    >>> import sheafnn
    >>> data = sheafnn.karate_club()
    >>> many = fit_many(data, SheafClassifier(stalk_dim=2, epochs=20), splits=[0, 1], seeds=[0, 1, 2])
    >>> len(many), many.table["test_accuracy"].shape
    (6, (6,))
    """
    if not isinstance(data, (Dataset, Hypergraph)):
        raise TypeError(f"data: {type(data).__name__} is not allowed; expected a Dataset or a Hypergraph")
    kind: Any = SheafClassifier if isinstance(data, Dataset) else HypergraphClassifier
    base = kind() if classifier is None else classifier
    if not isinstance(base, kind):
        raise TypeError(f"classifier: {type(base).__name__} is not allowed; expected a {kind.__name__}")
    if kind is HypergraphClassifier and device is not None:
        _checks.choice("device", device, ("cpu",))
        device = None
    for name, idle in (("search", None), ("progress", False), ("callback", None)):
        value = getattr(base, name, idle)
        if value is not idle:
            raise ValueError(f"classifier: {name}={value!r} is not allowed; {name} belongs to single fits")
    count = len(data.splits)
    if count == 0:
        ways = "make_splits() or with_splits()" if kind is SheafClassifier else "with_splits()"
        raise ValueError(f"data: it has no splits; make some with {ways}")
    numbers = [_checks.whole("splits", s, 0, count - 1) for s in _checks.listed("splits", splits, range(count))]
    states = [_checks.seed(s, "seeds") for s in _checks.listed("seeds", seeds, [base._seed()])]
    _checks.once("seeds", states)
    threads = _checks.whole("threads", threads, 0, 4096) or os.cpu_count() or 1
    classifiers, plans = [], []
    for number in numbers:
        for state in states:
            own = clone(base).set_params(random_state=state, **({} if device is None else {"device": device}))
            plan = own._plan_of_split(data, number)
            classifiers.append(own)
            plans.append(dataclasses.replace(plan, training={**plan.training, "threads": "1"}) if plan.device < 0 else plan)
    keep = getattr(base, "on_interrupt", "raise") == "keep"
    outcomes = _on_device(plans, keep) if plans[0].device >= 0 else _side_by_side(plans, keep, threads)
    done: list[tuple[Any, Any]] = []
    unused: list[str] = []
    interrupted = 0
    for own, plan, outcome in zip(classifiers, plans, outcomes):
        if outcome is None:
            interrupted += 1
            continue
        if isinstance(outcome, str):
            raise RuntimeError(f"split {plan.split}, seed {plan.seed}: {outcome}")
        for message, category in own._take(plan, outcome):
            interrupted += category is Interrupted
            unused += [message] if category is UnusedSheaf else []
        done.append((own, plan))
    if not done:
        raise KeyboardInterrupt
    if unused:
        warnings.warn(f"{len(unused)} of {len(done)} trainings: {unused[0]}", UnusedSheaf, stacklevel=2)
    if interrupted:
        warnings.warn(f"interrupted; {interrupted} of {len(plans)} trainings are not complete", Interrupted, stacklevel=2)
    table = {
        "split": np.array([plan.split for _, plan in done]),
        "seed": np.array([plan.seed for _, plan in done], np.uint64),
    }
    table |= {name: np.array([own.result_[name] for own, _ in done]) for name in _FIGURES}
    return FitMany([own for own, _ in done], table)


def _on_device(plans: list[_Plan], keep: bool) -> list[Any]:
    first = plans[0]
    runs = [(plan.split, plan.seed) for plan in plans]
    return _core.train_on_device(
        first.data._core, runs, *first.model, first.preset, first.network, first.training, None, keep, first.device
    )


class _NotedInterrupt:
    """Notes Ctrl-C instead of raising KeyboardInterrupt anywhere: raised while a lock of a future is taken, it would keep the lock.

    Other handlers of the signal than Python's own stay, and so do handlers in other threads than the main one.
    """

    def __enter__(self) -> "_NotedInterrupt":
        self._seen = False
        own = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        self._old = signal.signal(signal.SIGINT, self._note) if own else None
        return self

    def __exit__(self, *error: object) -> None:
        if self._old is not None:
            signal.signal(signal.SIGINT, self._old)
        if self._seen and error[0] is None:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: Any) -> None:
        self._seen = True

    def check(self) -> None:
        """Raises the KeyboardInterrupt that was noted since the last call."""
        if self._seen:
            self._seen = False
            raise KeyboardInterrupt


def _side_by_side(plans: list[Any], keep: bool, threads: int) -> list[Any]:
    """The outcomes in order; None: not begun. Trainings release the interpreter's lock."""
    stopped = threading.Event()

    def train(plan: Any) -> Any:
        if stopped.is_set():
            return None
        try:
            # Ctrl-C comes to the main thread; the others look at the event after every epoch.
            outcome = plan.train(lambda epoch, epochs: False if stopped.is_set() else None, keep)
        except RuntimeError as error:
            return str(error)
        if stopped.is_set() and outcome[1]["stop_reason"] == "callback":
            outcome[1]["stop_reason"] = "interrupted"
        return outcome

    with _NotedInterrupt() as interrupt, concurrent.futures.ThreadPoolExecutor(min(threads, len(plans))) as pool:
        outcomes: list[Any] = []
        try:  # from the first training on, so that whatever ends this function ends all of them
            futures = [pool.submit(train, plan) for plan in plans]
            while len(outcomes) < len(futures):
                try:
                    # With a limit: a signal that another thread receives does not wake a thread that waits without one.
                    done = concurrent.futures.wait(futures[len(outcomes) : len(outcomes) + 1], 0.1).done
                    interrupt.check()
                    if not done:
                        continue
                    outcome = futures[len(outcomes)].result()
                except KeyboardInterrupt:
                    stopped.set()
                    if not keep:
                        raise
                    continue
                outcomes.append(outcome)
                if isinstance(outcome, str):  # the others are not waited for
                    break
        finally:
            stopped.set()
    return outcomes
