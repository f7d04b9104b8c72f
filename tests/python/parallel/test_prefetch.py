"""Prefetching: order, depth, slots, errors, and the end."""

import threading
import time

import pytest

import outcore
from outcore.parallel.prefetch import Prefetch


class Model:
    """Requests that complete when they are waited for; records begins and waits in order."""

    def __init__(self, fails=None, cannot_begin=None):
        self.begun, self.waited, self.used = [], [], {}
        self.fails, self.cannot_begin = fails, cannot_begin

    def start(self, item, slot):
        if item == self.cannot_begin:
            raise outcore.OutcoreError(5, "begin")
        assert slot not in self.used, "the slot is used"
        self.used[slot] = item
        self.begun.append(item)
        model = self

        class Request:
            def wait(self):
                model.waited.append(item)
                if item == model.fails:
                    raise outcore.OutcoreError(5, "fetch", detail=str(item))

        return Request()


@pytest.mark.parametrize("slots", [1, 2, 5])
def test_items_come_in_order_and_so_many_are_under_way(slots):
    model = Model()
    for count, (item, slot) in enumerate(Prefetch(range(9), model.start, slots).in_order()):
        assert item == count == model.used[slot]
        assert len(model.begun) - count == min(slots, 9 - count)
        assert model.waited == list(range(count + 1))
        del model.used[slot]
    assert model.begun == list(range(9))


def test_items_are_asked_for_no_earlier_than_they_are_begun():
    asked = []

    def items():
        for item in range(6):
            asked.append(item)
            yield item

    ahead = Prefetch(items(), lambda *_: None, 2).in_order()
    next(ahead)
    assert asked == [0, 1, 2]  # one more, that waits for a slot


def test_threads_release_in_any_order_and_slots_are_used_in_turn():
    ahead = Prefetch(range(4), lambda *_: None, 2)
    each = iter(ahead)
    first, second = next(each), next(each)
    assert (first.slot, second.slot) == (0, 1)
    second.release()
    later = threading.Timer(0.2, first.release)
    later.start()
    third = next(each)  # waits for slot 0, although slot 1 is free
    assert (third.item, third.slot) == (2, 0)
    later.join()


def test_an_error_of_a_request_is_raised_and_close_waits_for_the_rest():
    model = Model(fails=1)
    ahead = Prefetch(range(9), model.start, 3)
    with pytest.raises(outcore.OutcoreError, match="fetch"), ahead:
        for _, slot in ahead.in_order():
            del model.used[slot]
    assert model.waited == model.begun
    assert model.begun == [0, 1, 2, 3]


def test_an_item_that_cannot_be_begun_stays_the_next():
    model = Model(cannot_begin=2)
    ahead = Prefetch(range(4), model.start, 4)
    with pytest.raises(outcore.OutcoreError, match="begin"):
        next(iter(ahead))
    model.cannot_begin = None
    assert [item for item, _ in ahead.in_order()] == [0, 1, 2, 3]


def test_finish_takes_part_in_all_that_is_left_after_an_error():
    model = Model(fails=0)
    ahead = Prefetch(range(9), lambda item, slot: Model.start(model, item, item), 3)
    with pytest.raises(outcore.OutcoreError):
        next(iter(ahead))
    ahead.finish()
    assert model.begun == model.waited == list(range(9))


def test_the_time_of_waiting_is_counted():
    class Slow:
        def wait(self):
            time.sleep(0.02)

    ahead = Prefetch(range(3), lambda *_: Slow(), 2)
    list(ahead.in_order())
    assert ahead.waited_seconds >= 0.06


def test_requests_of_an_exclusive_file_are_fetched_ahead(tmp_path):
    with outcore.ExclusiveFile("ahead", scratch=tmp_path) as file:
        file.write(bytes(range(200)), 0)
        buffers = [bytearray(20) for _ in range(3)]
        ahead = Prefetch(range(0, 200, 20), lambda offset, slot: file.read_async(buffers[slot], offset), 3)
        got = b"".join(bytes(buffers[slot]) for _, slot in ahead.in_order())
    assert got == bytes(range(200))
