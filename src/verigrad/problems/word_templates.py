"""The templates of the generated word problems: one record a template, read by ``words.py``.

A template has variables, a question and a worked solution. Variables are ``letter:kind`` with these kinds

    n   a quantity, 2 .. max_number            k   a small factor, 2 .. min(9, max_number)
    p   a percentage (10 20 25 50 75)          =   derived, for example ``t=k*m``: exact by construction

and a solution line states one calculation in brackets: ``[a+b=r]`` is worked out, shown as ``3 + 4 = 7`` and
binds ``r`` for the lines after it. The last bound name is the answer, so question, solution and answer cannot
disagree. Operators in one bracket have one precedence and are applied from left to right.

Slots: ``{X} {Y} {Z}`` three different names, ``{he} {He} {his}`` the pronouns of X, ``{i} {j}`` two different things
in the plural (``{i1} {j1}`` singular).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Template:
    """One way to phrase a problem; ``steps`` is the number of solution lines, each one calculation."""

    name: str
    kind: str
    variables: str
    question: str
    solution: tuple[str, ...]

    @property
    def steps(self) -> int:
        return len(self.solution)


def _t(name: str, variables: str, question: str, *solution: str) -> Template:
    return Template(name, name.partition(".")[0], variables, question, solution)


ONE_STEP: tuple[Template, ...] = (
    _t(
        "collecting.more", "a:n b:n",
        "{X} has {a} {i}. {Y} gives {X} {b} more {i}. How many {i} does {X} have now?",
        "{X} has [a+b=r] {i} now.",
    ),
    _t(
        "collecting.lose", "a:n b:n",
        "{X} had {a} {i} and gave {b} of them to {Y}. How many {i} does {X} have left?",
        "{X} has [a-b=r] {i} left.",
    ),
    _t(
        "collecting.before", "a:n b:n",
        "After {Y} gave {X} {a} {i}, {X} had {b} {i}. How many {i} did {X} have before that?",
        "Before that, {X} had [b-a=r] {i}.",
    ),
    _t(
        "collecting.gave_away", "a:n b:n",
        "{X} started the day with {a} {i}. {He} gave some of them to {Y} and had {b} {i} left. "
        "How many {i} did {X} give to {Y}?",
        "{X} gave away [a-b=r] {i}.",
    ),
    _t(
        "collecting.had_first", "a:n b:n",
        "{X} gave {a} {i} to {Y} and still has {b} {i}. How many {i} did {X} have at first?",
        "At first {X} had [a+b=r] {i}.",
    ),
    _t(
        "comparison.more_than", "a:n b:n",
        "{X} has {a} {i}. {Y} has {b} more {i} than {X}. How many {i} does {Y} have?",
        "{Y} has [a+b=r] {i}.",
    ),
    _t(
        "comparison.fewer_than", "a:n b:n",
        "{X} picked {a} {i}. {Y} picked {b} fewer {i} than {X}. How many {i} did {Y} pick?",
        "{Y} picked [a-b=r] {i}.",
    ),
    _t(
        "comparison.difference", "a:n b:n",
        "{X} has {a} {i} and {Y} has {b} {i}. How many more {i} does {X} have than {Y}?",
        "{X} has [a-b=r] more {i} than {Y}.",
    ),
    _t(
        "comparison.times", "a:n k:k",
        "{X} has {a} {i}. {Y} has {k} times as many {i} as {X}. How many {i} does {Y} have?",
        "{Y} has [a*k=r] {i}.",
    ),
    _t(
        "shopping.cost", "a:k b:n",
        "{X} buys {a} {i}. Each {i1} costs {b} dollars. How many dollars does {X} pay?",
        "{X} pays [a*b=r] dollars.",
    ),
    _t(
        "shopping.unit_price", "k:k m:n t=k*m",
        "{X} paid {t} dollars for {k} {i}, and every {i1} had the same price. "
        "How many dollars did one {i1} cost?",
        "One {i1} cost [t/k=r] dollars.",
    ),
    _t(
        "shopping.how_many", "k:k m:n t=k*m",
        "One {i1} costs {k} dollars. {X} spends {t} dollars on {i}. How many {i} does {X} buy?",
        "{X} buys [t/k=r] {i}.",
    ),
    _t(
        "money.change", "a:n b:n",
        "{X} pays with {a} dollars for a lunch that costs {b} dollars. How many dollars does {X} get back?",
        "{X} gets back [a-b=r] dollars.",
    ),
    _t(
        "money.saving", "a:k k:k",
        "{X} saves {a} dollars every week. How many dollars has {X} saved after {k} weeks?",
        "{X} has saved [a*k=r] dollars.",
    ),
    _t(
        "sharing.equal", "k:k m:n t=k*m",
        "{t} {i} are shared equally among {k} children. How many {i} does each child get?",
        "Each child gets [t/k=r] {i}.",
    ),
    _t(
        "sharing.groups", "k:k m:n t=k*m",
        "{X} puts {t} {i} into bags with {k} {i} in each bag. How many bags does {X} fill?",
        "{X} fills [t/k=r] bags.",
    ),
    _t(
        "packing.boxes", "a:k b:n",
        "There are {a} boxes with {b} {i} in each box. How many {i} are there altogether?",
        "There are [a*b=r] {i} altogether.",
    ),
    _t(
        "rates.reading", "a:n k:k",
        "{X} reads {a} pages every day. How many pages does {X} read in {k} days?",
        "{X} reads [a*k=r] pages.",
    ),
    _t(
        "distance.speed", "a:n k:k",
        "{X} rides a bicycle at {a} miles an hour for {k} hours. How many miles does {X} ride?",
        "{X} rides [a*k=r] miles.",
    ),
    _t(
        "distance.left", "a:n b:n",
        "{X} walks to a town that is {a} miles away. {He} has walked {b} miles so far. "
        "How many miles does {X} still have to walk?",
        "{X} still has to walk [a-b=r] miles.",
    ),
    _t(
        "time.minutes", "a:n b:n",
        "{X} practised the piano for {a} minutes on Monday and {b} minutes on Tuesday. "
        "For how many minutes did {X} practise in total?",
        "{X} practised for [a+b=r] minutes in total.",
    ),
    _t(
        "ages.future", "a:n k:k",
        "{X} is {a} years old. How old will {X} be in {k} years?",
        "In {k} years {X} will be [a+k=r] years old.",
    ),
    _t(
        "ages.past", "a:n k:k",
        "{X} is {a} years old. How old was {X} {k} years ago?",
        "{k} years ago {X} was [a-k=r] years old.",
    ),
    _t(
        "percent.part", "a:n p:p",
        "There are {a} children in a club. {p} percent of them play chess. How many children play chess?",
        "The number of children who play chess is [a*p/100=r].",
    ),
    _t(
        "garden.rows", "a:k b:k",
        "{X} plants {a} rows of carrots with {b} carrots in each row. How many carrots does {X} plant?",
        "{X} plants [a*b=r] carrots.",
    ),
)  # fmt: skip

TWO_STEPS: tuple[Template, ...] = (
    _t(
        "collecting.more_less", "a:n b:n c:n",
        "{X} has {a} {i}. {He} finds {b} more {i} and then gives {c} {i} to {Y}. "
        "How many {i} does {X} have now?",
        "After finding more, {X} has [a+b=s] {i}.",
        "After giving some away, {X} has [s-c=r] {i}.",
    ),
    _t(
        "collecting.less_less", "a:n b:n c:n",
        "{X} had {a} {i}. {He} lost {b} of them and sold {c} of them. How many {i} are left?",
        "After losing some, {X} had [a-b=s] {i}.",
        "After selling some, [s-c=r] {i} are left.",
    ),
    _t(
        "comparison.total", "a:n b:n",
        "{X} has {a} {i}. {Y} has {b} more {i} than {X}. How many {i} do they have together?",
        "{Y} has [a+b=s] {i}.",
        "Together they have [a+s=r] {i}.",
    ),
    _t(
        "comparison.fewer_total", "a:n b:n",
        "{X} caught {a} fish. {Y} caught {b} fewer fish than {X}. How many fish did they catch together?",
        "{Y} caught [a-b=s] fish.",
        "Together they caught [a+s=r] fish.",
    ),
    _t(
        "comparison.times_total", "a:n k:k",
        "{X} has {a} {i}. {Y} has {k} times as many {i} as {X}. How many {i} do they have together?",
        "{Y} has [a*k=s] {i}.",
        "Together they have [a+s=r] {i}.",
    ),
    _t(
        "comparison.times_difference", "a:n k:k",
        "{X} collected {a} {i}. {Y} collected {k} times as many. "
        "How many more {i} did {Y} collect than {X}?",
        "{Y} collected [a*k=s] {i}.",
        "{Y} collected [s-a=r] more {i} than {X}.",
    ),
    _t(
        "shopping.two_kinds", "a:k b:n c:n",
        "{X} buys {a} {i} for {b} dollars each and one bag for {c} dollars. How many dollars does {X} pay?",
        "The {i} cost [a*b=s] dollars.",
        "With the bag, {X} pays [s+c=r] dollars.",
    ),
    _t(
        "shopping.change", "a:k b:k c:n",
        "{X} buys {a} {i} for {b} dollars each and pays with {c} dollars. "
        "How many dollars does {X} get back?",
        "The {i} cost [a*b=s] dollars.",
        "{X} gets back [c-s=r] dollars.",
    ),
    _t(
        "shopping.discount", "a:k b:n c:k",
        "One {i1} costs {b} dollars. {X} buys {a} of them and gets {c} dollars off the total. "
        "How many dollars does {X} pay?",
        "Without the discount the price is [a*b=s] dollars.",
        "With the discount {X} pays [s-c=r] dollars.",
    ),
    _t(
        "money.saving_more", "a:n b:k k:k",
        "{X} has {a} dollars and saves {b} dollars every week. How many dollars does {X} have after {k} weeks?",
        "In {k} weeks {X} saves [b*k=s] dollars.",
        "Then {X} has [a+s=r] dollars.",
    ),
    _t(
        "money.work", "a:k b:k c:n",
        "{X} earns {a} dollars an hour and works {b} hours. Then {he} spends {c} dollars on a book. "
        "How many dollars of the earnings are left?",
        "{X} earns [a*b=s] dollars.",
        "After buying the book, [s-c=r] dollars are left.",
    ),
    _t(
        "sharing.eat_first", "k:k m:k b:n a=k*m+0 t=a+b",
        "{X} has {t} {i}. {He} keeps {b} of them and shares the rest equally among {k} friends. "
        "How many {i} does each friend get?",
        "{X} shares [t-b=s] {i}.",
        "Each friend gets [s/k=r] {i}.",
    ),
    _t(
        "sharing.together", "k:k a:n b:n",
        "{X} picks {a} {i} and {Y} picks {b} {i}. They put all of them into {k} baskets, "
        "the same number in each. How many {i} are in each basket?",
        "Together they pick [a+b=s] {i}.",
        "Each basket holds [s/k=r] {i}.",
    ),
    _t(
        "sharing.plus_own", "k:k m:k b:n t=k*m",
        "{t} {i} are shared equally among {k} children. {X} is one of the children and already had {b} {i}. "
        "How many {i} does {X} have now?",
        "Each child gets [t/k=s] {i}.",
        "{X} now has [b+s=r] {i}.",
    ),
    _t(
        "packing.loose", "a:k b:k c:n",
        "{X} has {a} boxes with {b} {i} in each box, and {c} loose {i}. How many {i} does {X} have?",
        "The boxes hold [a*b=s] {i}.",
        "With the loose ones, {X} has [s+c=r] {i}.",
    ),
    _t(
        "packing.broken", "a:k b:k c:n",
        "A shop gets {a} crates with {b} bottles in each crate. {c} bottles are broken. "
        "How many bottles are not broken?",
        "The shop gets [a*b=s] bottles.",
        "The number of bottles that are not broken is [s-c=r].",
    ),
    _t(
        "rates.machine", "k:k m:k b:k t=k*m",
        "A machine makes {t} toys in {k} hours, always at the same speed. "
        "How many toys does it make in {b} hours?",
        "In one hour it makes [t/k=s] toys.",
        "In {b} hours it makes [s*b=r] toys.",
    ),
    _t(
        "rates.pages_left", "a:k k:k c:n",
        "A book has {c} pages. {X} reads {a} pages a day for {k} days. How many pages are left to read?",
        "{X} reads [a*k=s] pages.",
        "There are [c-s=r] pages left.",
    ),
    _t(
        "distance.round_trip", "a:k k:k",
        "{X} lives {a} miles from school. {He} goes to school and back home on each of {k} days. "
        "How many miles does {X} travel in all?",
        "One trip to school and back is [a+a=s] miles.",
        "In {k} days {X} travels [s*k=r] miles.",
    ),
    _t(
        "distance.two_legs", "a:n k:k c:n",
        "{X} drives {a} miles an hour for {k} hours and then drives {c} more miles. "
        "How many miles does {X} drive in all?",
        "In {k} hours {X} drives [a*k=s] miles.",
        "In all {X} drives [s+c=r] miles.",
    ),
    _t(
        "time.tasks", "a:k b:k c:n",
        "{X} needs {a} minutes for each of {b} letters and then {c} minutes to walk to the post office. "
        "How many minutes does {X} need in all?",
        "The letters take [a*b=s] minutes.",
        "In all {X} needs [s+c=r] minutes.",
    ),
    _t(
        "ages.sum", "a:n b:k",
        "{X} is {a} years old. {Y} is {b} years older than {X}. What is the sum of their ages in years?",
        "{Y} is [a+b=s] years old.",
        "The sum of their ages is [a+s=r] years.",
    ),
    _t(
        "ages.future_times", "a:k k:k b:k",
        "{X} is {a} years old. {Y} is {k} times as old as {X}. How old will {Y} be in {b} years?",
        "{Y} is [a*k=s] years old.",
        "In {b} years {Y} will be [s+b=r] years old.",
    ),
    _t(
        "percent.rest", "a:n p:p",
        "A farmer has {a} hens. {p} percent of them are brown and the others are white. "
        "How many hens are white?",
        "The number of brown hens is [a*p/100=s].",
        "The number of white hens is [a-s=r].",
    ),
    _t(
        "percent.increase", "a:n p:p",
        "A ticket used to cost {a} dollars. The price goes up by {p} percent. "
        "How many dollars does the ticket cost now?",
        "The price goes up by [a*p/100=s] dollars.",
        "Now the ticket costs [a+s=r] dollars.",
    ),
)  # fmt: skip
