r"""Trees -> numbers: exact fractions while they last, then complex numbers of many digits.

A value is a Fraction or an mpmath complex number at ``digits`` digits. Two values that agree at 60
digits are asked again at 320 before they count as equal. Unknown letters get fixed rational
values, unknown functions get fixed values that depend only on their arguments' values, so that a
function nobody knows is still the same function on both sides.
"""

# mpmath carries no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

import hashlib
import math
import os
import threading
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from mpmath import MPContext

from verigrad.verifiers.math.limits import (
    MAX_BITS,
    MAX_EXPONENT,
    MAX_FACTORIAL,
    MAX_STEPS,
    MAX_TERMS,
    TooLarge,
    Unreadable,
)

Node = tuple[Any, ...]
Value = Any
DIGITS = (60, 320)
_LOCKS = [threading.RLock()]
_TRIG = {"sin", "cos", "tan", "cot", "sec", "csc"}
_CONTEXTS: dict[int, Any] = {}
_PLAIN = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arccot": "acot", "sinh": "sinh",
    "cosh": "cosh", "tanh": "tanh",
}  # fmt: skip


def _fresh_lock() -> None:
    """A fork may copy a lock that is held: the child starts with one of its own."""
    _LOCKS[0] = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fresh_lock)


def numeric_lock() -> threading.RLock:  # pyright: ignore[reportInvalidTypeForm]
    """Return this process's lock: mpmath shares tables, one thread at a time works with it."""
    return _LOCKS[0]


class _Budget(threading.local):
    steps = 0


_SPENT = _Budget()


def open_budget() -> None:
    """Start the step count of one comparison on this thread."""
    _SPENT.steps = 0


def charge(steps: int) -> None:
    """Count work done; TooLarge past the bound of one comparison, however long it took."""
    _SPENT.steps += steps
    if _SPENT.steps > MAX_STEPS:
        raise TooLarge("the comparison takes too many steps")


def _context(digits: int) -> Any:
    """One arithmetic per precision; its precision never changes."""
    if digits not in _CONTEXTS:
        context = MPContext()
        context.dps = digits
        _CONTEXTS[digits] = context
    return _CONTEXTS[digits]


class Evaluator:
    """Works out trees at one assignment of the letters, within the step bound."""

    def __init__(self, letters: Mapping[str, Fraction], *, digits: int, sign: int = 1) -> None:
        self.letters = letters
        self.sign = sign
        self.mp: Any = _context(digits)
        self.bound: dict[str, Fraction] = {}

    def value(self, node: Node) -> Value:
        """Return the value of a tree; TooLarge, Unreadable or ZeroDivisionError without one."""
        charge(1)
        method = getattr(self, "_" + node[0], None)
        if method is None:
            raise Unreadable(f"a {node[0]} has no single value")
        return _checked(method(node))

    def lift(self, value: Value) -> Any:
        """Return the value as a complex number of this precision."""
        if isinstance(value, Fraction):
            return self.mp.mpc(self.mp.mpf(value.numerator) / value.denominator)
        return value

    def _num(self, node: Node) -> Value:
        return node[1]

    def _sym(self, node: Node) -> Value:
        name = node[1]
        found = self.bound.get(name)
        return found if found is not None else self.letters[name]

    def _const(self, node: Node) -> Value:
        if node[1] == "inf":
            raise Unreadable("infinity has no value")
        if node[1] in self.bound:  # a sum may run over i
            return self.bound[node[1]]
        return {"pi": self.mp.mpc(self.mp.pi), "e": self.mp.mpc(self.mp.e), "i": self.mp.mpc(0, 1)}[
            node[1]
        ]

    def _add(self, node: Node) -> Value:
        total: Value = Fraction(0)
        for item in node[1]:
            total = self._plus(total, self.value(item))
        return total

    def _plus(self, a: Value, b: Value) -> Value:
        if isinstance(a, Fraction) and isinstance(b, Fraction):
            return a + b
        return self.lift(a) + self.lift(b)

    def _neg(self, node: Node) -> Value:
        return -self.value(node[1])

    def _pm(self, node: Node) -> Value:
        value = self.value(node[2])
        return value if (self.sign > 0) == (node[1] == "pm") else -value

    def _mixed(self, node: Node) -> Value:
        return self._plus(self.value(node[1]), self.value(node[2]))

    def _mul(self, node: Node) -> Value:
        return self._times(self.value(node[1][0]), self.value(node[1][1]))

    def _times(self, a: Value, b: Value) -> Value:
        if isinstance(a, Fraction) and isinstance(b, Fraction):
            return a * b
        return self.lift(a) * self.lift(b)

    def _div(self, node: Node) -> Value:
        a, b = self.value(node[1]), self.value(node[2])
        if b == 0 or (not isinstance(b, Fraction) and abs(b) < self.mp.mpf(10) ** -50):
            raise ZeroDivisionError("division by zero")
        if isinstance(a, Fraction) and isinstance(b, Fraction):
            return a / b
        return self.lift(a) / self.lift(b)

    def _pow(self, node: Node) -> Value:
        return self._raise(self.value(node[1]), self.value(node[2]))

    def _raise(self, a: Value, b: Value) -> Value:
        if isinstance(b, Fraction) and isinstance(a, Fraction):
            if b.denominator == 1:
                size = max(a.numerator.bit_length(), a.denominator.bit_length())
                if a not in (0, 1, -1) and abs(b) * size > MAX_BITS:
                    raise TooLarge("a power past the digit bound")
                if a in (1, -1, 0):
                    b = Fraction(int(b) % 2 or 2) if b else b
                return a ** int(b)
            exact = _exact_root(a, b.denominator)
            if exact is not None:
                return self._raise(exact, Fraction(b.numerator))
        x, y = self.lift(a), self.lift(b)
        if x == 0:
            return Fraction(0)
        if abs(y * self.mp.log(x)) > MAX_EXPONENT:
            raise TooLarge("a power past the size bound")
        return self.mp.power(x, y)

    def _root(self, node: Node) -> Value:
        degree, inside = self.value(node[1]), self.value(node[2])
        if not isinstance(degree, Fraction) or degree.denominator != 1 or not 1 < degree < 1000:
            raise Unreadable("the degree of a root is not a small integer")
        if degree % 2 and isinstance(inside, Fraction) and inside < 0:
            return -self._raise(-inside, 1 / degree)
        return self._raise(inside, 1 / degree)

    def _fact(self, node: Node) -> Value:
        value = self.value(node[1])
        if isinstance(value, Fraction) and value.denominator == 1 and value < 0:
            raise ZeroDivisionError("the factorial of a negative integer")
        if not isinstance(value, Fraction) or value.denominator != 1:
            if abs(value) > MAX_FACTORIAL:
                raise TooLarge("a factorial past the bound")
            return self.mp.mpc(self.mp.gamma(self.lift(value) + 1))
        if value > MAX_FACTORIAL:
            raise TooLarge("a factorial past the bound")
        return Fraction(math.factorial(int(value)))

    def _binom(self, node: Node) -> Value:
        n, k = self.value(node[1]), self.value(node[2])
        if isinstance(k, Fraction) and k.denominator == 1 and 0 <= k <= 50:
            product: Value = Fraction(1, math.factorial(int(k)))
            for j in range(int(k)):
                product = self._times(product, self._plus(n, Fraction(-j)))
            return product
        whole = all(isinstance(v, Fraction) and v.denominator == 1 and v >= 0 for v in (n, k))
        if not whole:
            return self._wide_binom(n, k)
        if n > MAX_FACTORIAL:
            raise TooLarge("a binomial coefficient past the bound")
        return Fraction(math.comb(int(n), int(k)))

    def _wide_binom(self, n: Value, k: Value) -> Value:
        """The binomial coefficient by the gamma function, where one of the two is no integer."""
        if max(abs(n), abs(k)) > MAX_FACTORIAL:
            raise TooLarge("a binomial coefficient past the bound")
        return self.mp.mpc(self.mp.binomial(self.lift(n), self.lift(k)))

    def _deg(self, node: Node) -> Value:
        return self.lift(self.value(node[1])) * self.mp.pi / 180

    def _app(self, node: Node) -> Value:
        return self.opaque(node[1], [self.value(item) for item in node[2]])

    def _big(self, node: Node) -> Value:
        """A sum or product with few terms is worked out; any other is a function of its parts."""
        _, name, low, high, body = node
        if low is None or high is None or name == "int" or low[0] != "rel":
            parts = [p for p in (low, high) if p is not None and p[0] != "rel"]
            return self.opaque(name, [self.value(p) for p in (*parts, body)])
        index, start, stop = low[1][0], self.value(low[1][1]), None
        if index[0] != "sym" and index != ("const", "i"):
            raise Unreadable("a sum runs over something that is not a letter")
        if high != ("const", "inf"):
            stop = self.value(high)
        whole = isinstance(stop, Fraction) and stop.denominator == 1 and start.denominator == 1
        if whole and stop is not None and _letters(high) == set() == _letters(low[1][1]):
            if stop - start > MAX_TERMS:
                raise TooLarge("a sum past the term bound")
            total: Value = Fraction(0 if name == "sum" else 1)
            for k in range(int(start), int(stop) + 1):
                term = self._at(index[1], Fraction(k), body)
                total = self._plus(total, term) if name == "sum" else self._times(total, term)
            return total
        samples = [self._at(index[1], Fraction(k), body) for k in (3, 7, 12)]
        return self.opaque(name, [start, Fraction(-1, 7) if stop is None else stop, *samples])

    def _at(self, name: str, value: Fraction, body: Node) -> Value:
        before = self.bound.get(name)
        self.bound[name] = value
        try:
            return self.value(body)
        finally:
            if before is None:
                del self.bound[name]
            else:
                self.bound[name] = before

    def opaque(self, name: str, args: list[Value]) -> Fraction:
        """A fixed value for a function nobody knows, the same for the same arguments."""
        keys = [name]
        for value in args:
            if isinstance(value, Fraction):
                keys.append(str(hash(value)) + f"/{value.denominator.bit_length()}")
            else:
                keys.append(self.mp.nstr(value.real, 25) + "," + self.mp.nstr(value.imag, 25))
        digest = hashlib.blake2b("|".join(keys).encode(), digest_size=8).digest()
        return Fraction(int.from_bytes(digest, "big") % 99_991 + 10_007, 7_919)

    def _fn(self, node: Node) -> Value:
        name, args = node[1], [self.value(a) for a in node[2]]
        if name in ("max", "min", "gcd", "lcm"):
            return self._of_many(name, args)
        if name in ("abs", "floor", "ceil"):
            return self._real_function(name, args[0])
        if name == "sqrt":
            return self._raise(args[0], Fraction(1, 2))
        if name in ("ln", "log"):
            return self._log(name, args)
        x = self.lift(args[0])
        if abs(x) > MAX_EXPONENT:
            raise TooLarge("a function's argument is past the size bound")
        if name in _TRIG:
            result = self.mp.mpc(getattr(self.mp, name)(x))
            if abs(result) > self.mp.mpf(10) ** 40:
                raise ZeroDivisionError("a pole")
            return result
        if name == "exp":
            return self.mp.mpc(self.mp.exp(x))
        if name in _PLAIN:
            return self.mp.mpc(getattr(self.mp, _PLAIN[name])(x))
        return self.opaque(name, args)

    def _of_many(self, name: str, args: list[Value]) -> Value:
        if not all(isinstance(a, Fraction) for a in args):
            return self.opaque(name, args)
        if name in ("max", "min"):
            return max(args) if name == "max" else min(args)
        if any(a.denominator != 1 for a in args):
            return self.opaque(name, args)
        whole = [int(a) for a in args]
        return Fraction(math.gcd(*whole) if name == "gcd" else math.lcm(*whole))

    def _real_function(self, name: str, value: Value) -> Value:
        if isinstance(value, Fraction):
            if name == "abs":
                return abs(value)
            return Fraction(math.floor(value) if name == "floor" else math.ceil(value))
        if name == "abs":
            return self.mp.mpc(abs(value))
        if abs(value) > 10**15:
            raise TooLarge("a rounded number past the size bound")
        rounded = self.mp.floor(value.real) if name == "floor" else self.mp.ceil(value.real)
        return Fraction(int(rounded))

    def _log(self, name: str, args: list[Value]) -> Value:
        base: Value = None
        if name == "log":
            base = args[1] if len(args) > 1 else Fraction(10)
        if args[0] == 0:
            raise ZeroDivisionError("the logarithm of zero")
        top = self.mp.log(self.lift(args[0]))
        if base is None:
            return self.mp.mpc(top)
        bottom = self.mp.log(self.lift(base))
        if bottom == 0:
            raise ZeroDivisionError("a logarithm to base one")
        return self.mp.mpc(top / bottom)


def _letters(node: Any) -> set[str]:
    """The names of the unknown letters in a tree."""
    if not isinstance(node, tuple):
        return set()
    if len(node) == 2 and node[0] == "sym":
        return {str(node[1])}
    return set().union(*(_letters(part) for part in node)) if node else set()


letters = _letters


def _checked(value: Value) -> Value:
    if isinstance(value, Fraction):
        bits = value.numerator.bit_length() + value.denominator.bit_length()
        if bits > 2 * MAX_BITS:
            raise TooLarge("a number past the digit bound")
        if bits > 512:
            charge(bits >> 6)
    return value


def _exact_root(value: Fraction, degree: int) -> Fraction | None:
    """The exact root of a positive fraction when it is a fraction, else None."""
    if value < 0 or degree > 60:
        return None
    top, bottom = _whole_root(value.numerator, degree), _whole_root(value.denominator, degree)
    return None if top is None or bottom is None else Fraction(top, bottom)


def _whole_root(n: int, degree: int) -> int | None:
    if n in (0, 1):
        return n
    if n.bit_length() > 4_000:
        return None
    if degree == 2:
        root = math.isqrt(n)
    else:
        root = 1 << (-(-n.bit_length() // degree))
        while True:
            better = ((degree - 1) * root + n // root ** (degree - 1)) // degree
            if better >= root:
                break
            root = better
    return root if root**degree == n else None
