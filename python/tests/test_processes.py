"""The end of a process during a training, and Ctrl-C."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import sheafnn


def start(program, *arguments):
    # Of the same package, also where it is not installed.
    path = os.pathsep.join([str(pathlib.Path(sheafnn.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), *map(str, arguments)], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, env={**os.environ, "PYTHONPATH": path}, start_new_session=True,
    )


DAEMON = """
    import sys, threading, time, sheafnn
    kind, nodes, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    data = sheafnn.synthetic(nodes=nodes)
    ready = threading.Event()
    def call():
        callback = (lambda epoch: ready.set()) if kind == "callback" else None
        model = sheafnn.SheafClassifier(epochs=10**6 if kind in ("fit", "callback") else 3, patience=10**6, threads=threads, callback=callback)
        if kind == "fit":
            ready.set()
        model.fit(data)
        model.predict_samples = 2000
        ready.set()
        while True:
            model.uncertainty(data) if kind == "uncertainty" else model.predict(data)
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    ready.wait()
    time.sleep(0.2)
    print("end")
"""


@pytest.mark.parametrize(
    ("kind", "threads"), [("fit", 1), ("fit", 2), ("fit", 4), ("callback", 1), ("callback", 2), ("predict", 1), ("predict", 4), ("uncertainty", 2)]
)
def test_a_process_ends_while_a_thread_works(kind, threads):
    process = start(DAEMON, kind, 200, threads)
    output, _ = process.communicate(timeout=120)
    assert (process.returncode, output) == (0, "end\n")


def test_trainings_at_the_end_of_a_process():
    process = start(
        """
        import atexit
        def train():
            print(sheafnn.SheafClassifier(stalk_dim=2, epochs=3).fit(sheafnn.karate_club()).n_iter_)
        atexit.register(train)
        import sheafnn
        """
    )
    output, _ = process.communicate(timeout=120)
    assert (process.returncode, output) == (0, "3\n")


def interrupt(process, group=False):
    """Ctrl-C after the process has said that it is ready."""
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
    return process.communicate(timeout=120)[0]


HEAD = """
    import signal, sys, threading, time, warnings, numpy, sheafnn
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings.simplefilter("ignore")
    data = sheafnn.synthetic(nodes=300, classes=3)
    long = dict(epochs=10**8, patience=10**8, stalk_dim=2)
    print("ready", flush=True)
"""


@pytest.mark.parametrize("more", ["", "callback=lambda epoch: None", "progress=True"])
def test_ctrl_c_ends_a_loop_of_fits(more):
    process = start(HEAD + f"""
    try:
        for seed in range(3):
            sheafnn.SheafClassifier(**long, random_state=seed, {more}).fit(data)
    except KeyboardInterrupt:
        sys.exit("KeyboardInterrupt")
    """)
    output = interrupt(process)
    assert process.returncode == 1 and output.endswith("KeyboardInterrupt\n")


@pytest.mark.parametrize(("jobs", "group"), [(None, False), (2, False), (2, True)])
@pytest.mark.parametrize("search", ["scikit-learn", "graph"])
def test_ctrl_c_ends_a_search(search, jobs, group):
    if search == "graph":
        call = f"sheafnn.grid_search(data, {{'channels': [4, 8, 16]}}, sheafnn.SheafClassifier(**long), n_jobs={jobs})"
    else:
        call = f"GridSearchCV(sheafnn.SheafClassifier(**long), {{'channels': [4, 8, 16]}}, cv=2, n_jobs={jobs}).fit(data.features, data.labels)"
    process = start(HEAD.replace("import signal", "from sklearn.model_selection import GridSearchCV\n    import signal") + f"""
    try:
        {call}
        print("went on")
    except KeyboardInterrupt:
        print("the search was interrupted")
    """)
    output = interrupt(process, group)
    assert "the search was interrupted" in output and "went on" not in output  # joblib's processes write between
    assert process.returncode == 0


def test_ctrl_c_may_keep_the_finished_candidates():
    process = start(HEAD + """
    base = sheafnn.SheafClassifier(stalk_dim=2, patience=10**8, on_interrupt="keep")
    found = sheafnn.grid_search(data, {"epochs": [2, 10**8]}, base, splits=[0])
    print(found.best_params, found.results["params"])
    """)
    output = interrupt(process)
    assert output == "{'epochs': 2} [{'epochs': 2}]\n" and process.returncode == 0
    process = start(HEAD + """
    try:
        sheafnn.grid_search(data, {"epochs": [10**8]}, sheafnn.SheafClassifier(patience=10**8, on_interrupt="keep"))
    except KeyboardInterrupt:
        print("KeyboardInterrupt")
    """)
    assert interrupt(process) == "KeyboardInterrupt\n"


def test_ctrl_c_is_the_main_threads():
    """A training in another thread goes on, the main thread has its KeyboardInterrupt."""
    process = start(HEAD + """
    epochs = []
    model = sheafnn.SheafClassifier(stalk_dim=2, epochs=10**8, patience=10**8, callback=lambda e: epochs.append(e.epoch) or not stop.is_set())
    stop = threading.Event()
    thread = threading.Thread(target=lambda: model.fit(data))
    thread.start()
    try:
        while True:
            time.sleep(0.01)
    except KeyboardInterrupt:
        before = len(epochs)
        while len(epochs) < before + 5:
            time.sleep(0.01)
        stop.set()
        thread.join()
        print(model.result_["stop_reason"])
    """)
    assert interrupt(process) == "callback\n"


def test_handlers_of_ones_own():
    """One that raises ends the training with its exception, one that returns does not."""
    process = start(HEAD + """
    class Stopped(Exception): pass
    calls = []
    def handler(number, frame):
        calls.append(number)
        if len(calls) == 2:
            raise Stopped
        threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT)).start()
    signal.signal(signal.SIGINT, handler)
    try:
        sheafnn.SheafClassifier(**long).fit(data)
    except Stopped:
        print(len(calls))
    """)
    assert interrupt(process) == "2\n"


def test_a_process_ends_while_a_thread_reads_arrays():
    for _ in range(5):
        process = start(
            """
            import sys, threading, time, sheafnn
            data = sheafnn.synthetic(nodes=300)
            def read():
                while True:
                    data.edges, data.codes, data._core.listed_arcs
            threading.Thread(target=read, daemon=True).start()
            time.sleep(0.1)
            sys.exit(7)
            """
        )
        output, _ = process.communicate(timeout=120)
        assert (process.returncode, output) == (7, "")
