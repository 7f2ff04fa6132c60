"""Word problems of two steps. See word_template.py for the notation."""

from __future__ import annotations

from verigrad.problems.word_template import Template, template

TWO_STEPS: tuple[Template, ...] = (
    template(
        "collecting.more_less", "a:n b:n c:n",
        "{X} has {a} {i}. {He} finds {b} more {i} and then gives {c} {i} to {Y}. "
        "How many {i} does {X} have now?",
        "After finding more, {X} has [a+b=s] {i}.",
        "After giving some away, {X} has [s-c=r] {i}.",
    ),
    template(
        "collecting.less_less", "a:n b:n c:n",
        "{X} had {a} {i}. {He} lost {b} of them and sold {c} of them. How many {i} are left?",
        "After losing some, {X} had [a-b=s] {i}.",
        "After selling some, [s-c=r] {i} are left.",
    ),
    template(
        "comparison.total", "a:n b:n",
        "{X} has {a} {i}. {Y} has {b} more {i} than {X}. How many {i} do they have together?",
        "{Y} has [a+b=s] {i}.",
        "Together they have [a+s=r] {i}.",
    ),
    template(
        "comparison.fewer_total", "a:n b:n",
        "{X} caught {a} fish. {Y} caught {b} fewer fish than {X}. "
        "How many fish did they catch together?",
        "{Y} caught [a-b=s] fish.",
        "Together they caught [a+s=r] fish.",
    ),
    template(
        "comparison.times_total", "a:n k:k",
        "{X} has {a} {i}. {Y} has {k} times as many {i} as {X}. "
        "How many {i} do they have together?",
        "{Y} has [a*k=s] {i}.",
        "Together they have [a+s=r] {i}.",
    ),
    template(
        "comparison.times_difference", "a:n k:k",
        "{X} collected {a} {i}. {Y} collected {k} times as many. "
        "How many more {i} did {Y} collect than {X}?",
        "{Y} collected [a*k=s] {i}.",
        "{Y} collected [s-a=r] more {i} than {X}.",
    ),
    template(
        "shopping.two_kinds", "a:k b:n c:n",
        "{X} buys {a} {i} for {b} dollars each and one bag for {c} dollars. "
        "How many dollars does {X} pay?",
        "The {i} cost [a*b=s] dollars.",
        "With the bag, {X} pays [s+c=r] dollars.",
    ),
    template(
        "shopping.change", "a:k b:k c:n",
        "{X} buys {a} {i} for {b} dollars each and pays with {c} dollars. "
        "How many dollars does {X} get back?",
        "The {i} cost [a*b=s] dollars.",
        "{X} gets back [c-s=r] dollars.",
    ),
    template(
        "shopping.discount", "a:k b:n c:k",
        "One {i1} costs {b} dollars. {X} buys {a} of them and gets {c} dollars off the total. "
        "How many dollars does {X} pay?",
        "Without the discount the price is [a*b=s] dollars.",
        "With the discount {X} pays [s-c=r] dollars.",
    ),
    template(
        "money.saving_more", "a:n b:k k:k",
        "{X} has {a} dollars and saves {b} dollars every week. "
        "How many dollars does {X} have after {k} weeks?",
        "In {k} weeks {X} saves [b*k=s] dollars.",
        "Then {X} has [a+s=r] dollars.",
    ),
    template(
        "money.work", "a:k b:k c:n",
        "{X} earns {a} dollars an hour and works {b} hours. Then {he} spends {c} dollars "
        "on a book. How many dollars of the earnings are left?",
        "{X} earns [a*b=s] dollars.",
        "After buying the book, [s-c=r] dollars are left.",
    ),
    template(
        "sharing.eat_first", "k:k m:k b:n a=k*m t=a+b",
        "{X} has {t} {i}. {He} keeps {b} of them and shares the rest equally among {k} friends. "
        "How many {i} does each friend get?",
        "{X} shares [t-b=s] {i}.",
        "Each friend gets [s/k=r] {i}.",
    ),
    template(
        "sharing.together", "k:k a:n b:n",
        "{X} picks {a} {i} and {Y} picks {b} {i}. They put all of them into {k} baskets, "
        "the same number in each. How many {i} are in each basket?",
        "Together they pick [a+b=s] {i}.",
        "Each basket holds [s/k=r] {i}.",
    ),
    template(
        "sharing.plus_own", "k:k m:k b:n t=k*m",
        "{t} {i} are shared equally among {k} children. {X} is one of the children "
        "and already had {b} {i}. How many {i} does {X} have now?",
        "Each child gets [t/k=s] {i}.",
        "{X} now has [b+s=r] {i}.",
    ),
    template(
        "packing.loose", "a:k b:k c:n",
        "{X} has {a} boxes with {b} {i} in each box, and {c} loose {i}. "
        "How many {i} does {X} have?",
        "The boxes hold [a*b=s] {i}.",
        "With the loose ones, {X} has [s+c=r] {i}.",
    ),
    template(
        "packing.broken", "a:k b:k c:n",
        "A shop gets {a} crates with {b} bottles in each crate. {c} bottles are broken. "
        "How many bottles are not broken?",
        "The shop gets [a*b=s] bottles.",
        "The number of bottles that are not broken is [s-c=r].",
    ),
    template(
        "rates.machine", "k:k m:k b:k t=k*m",
        "A machine makes {t} toys in {k} hours, always at the same speed. "
        "How many toys does it make in {b} hours?",
        "In one hour it makes [t/k=s] toys.",
        "In {b} hours it makes [s*b=r] toys.",
    ),
    template(
        "rates.pages_left", "a:k k:k c:n",
        "A book has {c} pages. {X} reads {a} pages a day for {k} days. "
        "How many pages are left to read?",
        "{X} reads [a*k=s] pages.",
        "There are [c-s=r] pages left.",
    ),
    template(
        "distance.round_trip", "a:k k:k",
        "{X} lives {a} miles from school. {He} goes to school and back home on each of {k} days. "
        "How many miles does {X} travel in all?",
        "One trip to school and back is [a+a=s] miles.",
        "In {k} days {X} travels [s*k=r] miles.",
    ),
    template(
        "distance.two_legs", "a:n k:k c:n",
        "{X} drives {a} miles an hour for {k} hours and then drives {c} more miles. "
        "How many miles does {X} drive in all?",
        "In {k} hours {X} drives [a*k=s] miles.",
        "In all {X} drives [s+c=r] miles.",
    ),
    template(
        "time.tasks", "a:k b:k c:n",
        "{X} needs {a} minutes for each of {b} letters and then {c} minutes to walk "
        "to the post office. How many minutes does {X} need in all?",
        "The letters take [a*b=s] minutes.",
        "In all {X} needs [s+c=r] minutes.",
    ),
    template(
        "ages.sum", "a:n b:k",
        "{X} is {a} years old. {Y} is {b} years older than {X}. "
        "What is the sum of their ages in years?",
        "{Y} is [a+b=s] years old.",
        "The sum of their ages is [a+s=r] years.",
    ),
    template(
        "ages.future_times", "a:k k:k b:k",
        "{X} is {a} years old. {Y} is {k} times as old as {X}. How old will {Y} be in {b} years?",
        "{Y} is [a*k=s] years old.",
        "In {b} years {Y} will be [s+b=r] years old.",
    ),
    template(
        "percent.rest", "a:n p:p",
        "A farmer has {a} hens. {p} percent of them are brown and the others are white. "
        "How many hens are white?",
        "The number of brown hens is [a*p/100=s].",
        "The number of white hens is [a-s=r].",
    ),
    template(
        "percent.increase", "a:n p:p",
        "A ticket used to cost {a} dollars. The price goes up by {p} percent. "
        "How many dollars does the ticket cost now?",
        "The price goes up by [a*p/100=s] dollars.",
        "Now the ticket costs [a+s=r] dollars.",
    ),
)  # fmt: skip
