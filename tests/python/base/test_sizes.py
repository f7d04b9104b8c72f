"""Numbers of bytes for people."""

import pytest

from outcore.base.sizes import in_words


@pytest.mark.parametrize(
    "count, words",
    [
        (-5, "0 bytes"),
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.00 kB"),
        (4_321, "4.32 kB"),
        (999_900, "1.00 MB"),
        (12_345_678, "12.3 MB"),
        (200_600_000, "201 MB"),
        (999_499_999, "999 MB"),
        (1_000_000_000, "1.00 GB"),
        (12_638_000_000, "12.6 GB"),
        (5_000_000_000_000, "5.00 TB"),
        (1 << 62, "4611686 TB"),
    ],
)
def test_bytes_in_words(count, words):
    assert in_words(count) == words
