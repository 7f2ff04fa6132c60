"""The bounds every check stays under, so that no verdict depends on a clock or on load.

Sizes come first: characters, tokens, nesting, digits, powers, terms. An input past one of them
raises Unreadable (it cannot be read) or TooLarge (it can be read but not worked out).
"""

from __future__ import annotations

MAX_CHARACTERS = 20_000
"""Longest answer that is read."""
MAX_TOKENS = 4_000
MAX_CHAIN = 120
"""Most factors, signs or marks that follow one another."""
MAX_DEPTH = 60
"""Deepest nesting of brackets, roots and powers."""
MAX_DIGITS = 4_000
"""Longest literal number; Python's own limit stands at 4300."""
MAX_BITS = 60_000
"""Largest numerator or denominator that is worked out."""
MAX_FACTORIAL = 3_000
MAX_EXPONENT = 100_000
"""Largest natural logarithm of an irrational power or exponential."""
MAX_TERMS = 1_000
"""Most terms of a sum or product that is added up."""
MAX_STEPS = 100_000
"""Most nodes worked out in one comparison."""
MAX_ITEMS = 400
"""Most members of a set or list whose order is free."""


class Unreadable(ValueError):
    """The text is not mathematics this package reads."""


class TooLarge(ValueError):
    """The expression is readable, and past a bound when worked out."""
