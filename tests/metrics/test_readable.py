import pytest

from sf.metrics.readable import count, four_digits, number


@pytest.mark.parametrize(
    ("value", "exact", "whole"),
    [
        (None, "-", "-"),
        (12345.678, "12,345.68", "12,346"),
        (0.0, "0.00", "0"),
        (0.0123, "0.012", "0"),
    ],
)
def test_numbers_have_separators_and_as_many_digits_as_say_something(value, exact, whole):
    assert (number(value), count(value)) == (exact, whole)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-0.123456, "-0.1235"), (99.996, "100"), (999.96, "1,000"), (-2e6, "-2,000,000"), (1.5e99, "1.5e+99")],
)
def test_a_measured_value_has_four_digits_or_all_before_its_point(value, text):
    assert four_digits(value) == text
