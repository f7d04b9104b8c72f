"""Tables that notebooks show: escaped, without colours, with numbers to the right."""

from html.parser import HTMLParser

import pytest

from outcore.base import html, notebook

VOID = {"br", "img"}


class Text(HTMLParser):
    """The text of each cell; fails on tags that are not closed."""

    def __init__(self, given):
        super().__init__()
        self.open, self.cells = [], []
        self.feed(given)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


def test_what_is_no_number_is_escaped():
    made = html.facts("<b>", [("path", "<script>alert(1)</script>"), ('"', "&")])
    assert "<script" not in made and "<b>" not in made
    assert Text(made).cells == ["path", "<script>alert(1)</script>", '"', "&"]


def test_a_fact_without_a_value_is_left_out():
    assert Text(html.facts("x", [("a", 1), ("b", None)])).cells == ["a", "1"]


def test_columns_of_numbers_are_set_to_the_right():
    made = html.table("x", ("name", "size"), [("first", "1.5 MB"), ("2nd array", "-")])
    assert made.count("text-align:right") == 3  # the head and two rows


def test_of_many_rows_the_ends_are_shown():
    cells = Text(html.table("x", ("row",), [(i,) for i in range(100)])).cells
    assert cells[1] == "0" and cells[-1] == "99" and ".. 40 more rows .." in cells
    assert len(cells) == 62


def test_there_are_no_colours():
    made = html.table("x", ("a",), [(1,)], "foot") + html.facts("y", [("a", 1)]) + html.text("z")
    assert "#" not in made and "background" not in made


def test_a_bar_has_its_fraction_and_escapes():
    made = notebook.html("<a>", 0.25, "3 s left")
    assert 'value="0.250"' in made and "25%, 3 s left" in made and "&lt;a&gt;" in made


@pytest.mark.parametrize("fraction, wanted", [(-1, "0.000"), (2, "1.000")])
def test_a_bar_stays_in_its_limits(fraction, wanted):
    assert f'value="{wanted}"' in notebook.html("a", fraction)


def test_a_script_is_no_notebook():
    assert not notebook.in_notebook()
