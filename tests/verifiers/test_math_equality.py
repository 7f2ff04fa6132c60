r"""Which answers are equal, kind by kind: the labels are the policy, typed by hand.

Each line of a table is ``gold | answer``; the first table holds equal pairs, the second unequal.
"""

from __future__ import annotations

import pytest

from verigrad.types import Outcome
from verigrad.verifiers.math import judge

EQUAL = r"""
1234567 | 1,234,567
10,\!080 | 10080
14{,}916 | 14916
7 | 007
0 | -0
0.5 | .5
3.75 | \frac{15}{4}
\frac{2}{7} | \frac27
\frac{1}{72} | \frac1{72}
-\frac{2}{3} | \frac{-2}{3}
2\frac{1}{3} | \frac{7}{3}
\frac{31}{4} | 7 3/4
\frac{5}{2} | 2½
28\% | 28 \text{ percent}
\$1,250 | 1250
75 \text{ cents} | \$0.75
15\mbox{ cm}^2 | 15
1.5 \text{ hours} | 90 \text{ minutes}
6 \text{ ft } 2 \text{ in} | 74 \text{ in}
12\text{ m/s} | 12 \text{ meters per second}
25\pi \text{ cm}^2 | 25\pi
60^\circ | 60°
70^{\circ}\text{F} | 70
120000 | 1.2 \times 10^5
1000 | 1e3
0.1\overline{6} | \frac{1}{6}
1 | 0.\overline{9}
3\sqrt{13} | \sqrt{117}
\frac{1}{\sqrt{2}} | \frac{\sqrt{2}}{2}
\sqrt[3]{8} | 2
3+2\sqrt{2} | (1+\sqrt{2})^2
\frac{\sqrt[3]{4}}{2} | \frac{1}{\sqrt[3]{2}}
6\pi | 6π
e^{i\pi} | -1
\frac{1}{i} | -i
\ln 4 | 2\ln 2
\log_2 8 | 3
\frac{1}{2} | \sin 30^\circ
\sin^2 x | 1-\cos^2 x
120 | 5!
\binom{n}{2} | \frac{n(n-1)}{2}
\binom{10}{3} | \binom{10}{7}
2^{100} | 1267650600228229401496703205376
x^2 | x²
(a+5)(b+2) | ab+2a+5b+10
\frac{1}{x-1} | -\frac{1}{1-x}
|x-3| | |3-x|
\sum_{k=1}^{n} k | \sum_{j=1}^{n} j
5 | x = 5
2x+3 | f(x)=2x+3
2x+4y-3=0 | y=-\frac{1}{2}x+\frac{3}{4}
x \leq 5 | 5 \geq x
-2 < x < 7 | 7 > x > -2
x<3 | (-\infty,3)
x<-2 \text{ or } x>3 | (3,\infty)\cup(-\infty,-2)
x \ne 1 | (-\infty,1)\cup(1,\infty)
[2,5] | 2\le x\le 5
x \in [-2,7] | [-2, 7]
\{1,2,3\} | \{3,1,2\}
\{1\pm\sqrt{5},-2\} | \{-2,1+\sqrt5,1-\sqrt5\}
\emptyset | \varnothing
1, -2 | n = 1 \text{ or } n = -2
6 \text{ and } 8 | 6, 8
\pm 3 | 3, -3
(11,7),(7,11) | (7,11),\ (11,7)
(p,q)=(3,2) | (3,2)
(3,4) | x=3, y=4
\begin{pmatrix}1&2\\3&4\end{pmatrix} | \left[\begin{array}{cc}1 & 2 \\3 & 4\end{array}\right]
\begin{pmatrix} 7 \\ -2 \end{pmatrix} | \begin{pmatrix} 7 \\ -2\\ \end{pmatrix}
204_5 | 204_{5}
11:21 | V_1:V_2=11:21
10:30 \text{ a.m.} | 10:30\text{ AM}
f(2) < f(1) < f(4) | f(2)<f(1)<f(4)
\text{east} | East
\text{parabola} | \text{a parabola}
\text{(C)} | C
C | C. 15
5 | \text{five}
9 | $9$
8\pi | 8\pi \approx 25.13
5:4 | 5 \text{ to } 4
9:30 | 9{:}30
\{x : x > 3\} | x>3
0<x<1 | x>0 \text{ and } x<1
(x-1)^2+(y-2)^2=9 | x^2+y^2-2x-4y-4=0
"""

UNEQUAL = r"""
12 | 21
16 | -16
1234 | (1, 234)
(1,234) | 1234
\frac{1}{12} | \frac{1}{1}2
\frac{11}{4} | 1\frac{1}{4}
\frac{1}{3} | 0.3
\frac{1}{3} | 0.3333333333
\sqrt{2} | 1.41421356237309504880168872420969807856967
100000 | 99999
2^{100} | 1267650600228229401496703205377
0.5\% | 5\%
3\text{ km} | 3\text{ cm}
5 \text{ feet} | 5 \text{ meters}
20 \text{ cm}^2 | 20 \text{ cm}^3
12 \text{ apples} | 12 \text{ oranges}
12\text{ m/s} | 12\text{ km/h}
2:30 \text{ a.m.} | 2:30 \text{ p.m.}
1.2 \times 10^{5} | 1.2 \times 10^{4}
\sqrt{7} | 7
2\pi | 2
1-\frac{1}{e} | 1+\frac{1}{e}
3+4i | 3-4i
\sin x | \cos x
|x| | x
\lfloor x \rfloor | \lceil x \rceil
x+2n+1 | x+1
y=2x+3 | 2x+3
a+3z=0 | 0
x=42 | x-2=40
5 | x
x=4 | x=4 \text{ or } x=9
x \geq 5 | x > 5
x < 1 | x > -1
(0,9) | [0,9)
(-\infty,2]\cup[4,\infty) | [2,4]
\{1,2,3\} | \{1,2\}
\{0\} | \emptyset
5 | 5, 7
1331, 1728 | 1728
-3 | \pm 3
(2,5) | (5,2)
(-2,1) | -2,1
(7,6) | (7,6,0)
\begin{pmatrix}1 & 2 \\ 3 & 4\end{pmatrix} | \begin{pmatrix}1 & 3 \\ 2 & 4\end{pmatrix}
204_5 | 204_6
7:32 | 7:23
1.414 | \sqrt{2} \approx 1.414
10 | 1 \text{ to } 100
0<x<1 | x>0 \text{ or } x<1
\text{even} | \text{odd}
A | \text{B or A}
A | \text{a number}
42 | 4²
10 | 1O
x_1 | x_2
3 | 3 3
2 | 2++
8 | \neq 8
5 | \text{not } 5
"""


def pairs(table: str) -> list[tuple[str, str]]:
    rows = (line.rpartition(" | ") for line in table.strip().splitlines())
    return [(gold.strip(), answer.strip()) for gold, _, answer in rows]


@pytest.mark.parametrize(("gold", "answer"), pairs(EQUAL))
def test_equal_forms_are_right(gold: str, answer: str) -> None:
    verdict = judge(gold, f"So it is $\\boxed{{{answer}}}$.")
    assert verdict.outcome is Outcome.CORRECT, verdict.reason


@pytest.mark.parametrize(("gold", "answer"), pairs(UNEQUAL))
def test_other_values_are_wrong(gold: str, answer: str) -> None:
    verdict = judge(gold, f"So it is $\\boxed{{{answer}}}$.")
    assert verdict.outcome is Outcome.WRONG, verdict.reason


@pytest.mark.parametrize("answer", ["48+24", "8 \\times 9", "100-28", "8\\cdot 9 \\text{ cm}"])
def test_undone_arithmetic_is_a_choice_of_the_recipe(answer: str) -> None:
    text = f"\\boxed{{{answer}}}"
    assert judge("72", text).outcome is Outcome.WRONG
    assert "undone" in judge("72", text).reason
    assert judge("72", text, unevaluated="accept").outcome is Outcome.CORRECT


@pytest.mark.parametrize("answer", ["7.2 \\times 10^1", "\\frac{144}{2}", "72.0", "\\sqrt{5184}"])
def test_a_way_to_write_a_number_is_not_undone_arithmetic(answer: str) -> None:
    assert judge("72", f"\\boxed{{{answer}}}").outcome is Outcome.CORRECT


@pytest.mark.parametrize("gold", ["", "   ", "$$", "\\frac{7}{", "}{", "???"])
def test_an_unusable_gold_is_broken_and_has_no_reward(gold: str) -> None:
    verdict = judge(gold, "\\boxed{5}")
    assert verdict.outcome is Outcome.BROKEN
    assert verdict.reward is None
    assert "gold" in verdict.reason
