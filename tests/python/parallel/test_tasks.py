"""Tasks of all processes; on several processes see tests/mpi."""

import pytest

import outcore
from outcore.parallel.tasks import each_task, run_tasks, uneven


@pytest.fixture
def counter():
    with outcore.World("self") as world:
        counter = world.counter()
        counter.reset()
        yield counter


def test_each_is_done_once_and_the_last_progress_is_all_of_it(counter):
    done, said = [], []
    run_tasks(counter, [1.0] * 99, 3, lambda _, first, last: done.extend(range(first, last)), said.append)
    assert sorted(done) == list(range(99))
    assert said[-1] == 1.0
    assert said == sorted(said)


def test_each_task_is_done_once_and_told(counter):
    done, said = [], []
    each_task(counter, 20, 1, lambda thread, task: done.append((thread, task)), said.append)
    assert done == [(0, task) for task in range(20)]
    assert said == [*((task + 1) / 20 for task in range(20)), 1.0]


@pytest.mark.parametrize("threads", [1, 3])
def test_after_an_error_nothing_is_left_to_other_processes(counter, threads):
    def work(_thread, task):
        if task >= 5:
            raise OSError("task")

    with pytest.raises(OSError, match="task"):
        each_task(counter, 10**6, threads, work)
    assert counter.next() > 10**6


@pytest.mark.parametrize(
    ("costs", "workers", "times"), [([1] * 8, 4, 1.0), ([4, 1, 1, 1, 1], 2, 1.0), ([3, 1], 4, 3.0)]
)
def test_the_last_worker_decides(costs, workers, times):
    assert uneven(costs, workers) == pytest.approx(times)
