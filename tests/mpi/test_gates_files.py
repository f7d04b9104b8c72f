"""Shared files, record files and traces for which one process gives other arguments."""

from __future__ import annotations

import pytest
from gates import NAME, SIZES, STRANGE, Calls, all_say_the_same, error_of

from outcore import RecordFile, SharedFile, trace

CALLS = Calls()
each = CALLS.each


@each("name", 5, None, "", "other", NAME, STRANGE)
@each("hard_limit", *SIZES, "1MB")
@each("soft_limit", *SIZES, "1MB")
@each("reserve", "yes", 5, STRANGE)
@each("typical_request", *SIZES, "1MB")
@each("placement", "here", 5, NAME, STRANGE)
@each("components_per_node", "x", -1, 3, 1 << 40, 1.5, STRANGE)
@each("page_cache", "never", 5, NAME, STRANGE)
@each("client_cache_bytes", *SIZES)
def make_a_shared_file(world, paths, name="file", **options):
    with SharedFile(world, name, **options) as made:
        made.flush()


@each("name", 5, None, "", "other", NAME, STRANGE)
@each("records", "x", -1, 9, 1.5, 1 << 70, None, STRANGE)
@each("hard_limit", *SIZES, "100MB")
@each("soft_limit", *SIZES, "1MB")
@each("typical_record", *SIZES, "1MB")
@each("placement", "here", 5, NAME, STRANGE)
@each("page_cache", "never", 5, NAME, STRANGE)
def make_a_record_file(world, paths, name="file", records=4, **options):
    with RecordFile(world, name, records, **options) as made:
        made.flush()


@CALLS.parametrize
def test_what_is_wrong_at_one_process_is_the_same_error_at_all(world, paths, call, who):
    CALLS.check(world, paths, call, who)


@pytest.mark.parametrize("path", [5, STRANGE, "/no/such/directory/trace.json"])
def test_a_trace_that_the_first_process_cannot_write_is_an_error_at_all(comm, world, path):
    said = error_of(trace.save, path, comm)
    assert all_say_the_same(world, said), said
