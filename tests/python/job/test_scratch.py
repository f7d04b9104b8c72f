"""Where scratch files go."""

import errno
import os

import pytest

from outcore.base.errors import OutcoreError
from outcore.job.scratch import find_scratch


def test_given_scratch_is_used(tmp_path):
    assert find_scratch(tmp_path) == str(tmp_path)


def test_default_scratch_is_writable():
    assert os.access(find_scratch(), os.W_OK)


@pytest.mark.parametrize(("name", "code"), [("none", errno.ENOENT), ("file", errno.ENOTDIR)])
def test_unusable_scratch_is_refused(tmp_path, name, code):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutcoreError, match=str(tmp_path / name)) as caught:
        find_scratch(tmp_path / name)
    assert caught.value.errno == code
