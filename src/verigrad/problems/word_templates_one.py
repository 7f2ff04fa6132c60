"""Word problems of one step. See word_template.py for the notation."""

from __future__ import annotations

from verigrad.problems.word_template import Template, template

ONE_STEP: tuple[Template, ...] = (
    template(
        "collecting.more", "a:n b:n",
        "{X} has {a} {i}. {Y} gives {X} {b} more {i}. How many {i} does {X} have now?",
        "{X} has [a+b=r] {i} now.",
    ),
    template(
        "collecting.lose", "a:n b:n",
        "{X} had {a} {i} and gave {b} of them to {Y}. How many {i} does {X} have left?",
        "{X} has [a-b=r] {i} left.",
    ),
    template(
        "collecting.before", "a:n b:n",
        "After {Y} gave {X} {a} {i}, {X} had {b} {i}. How many {i} did {X} have before that?",
        "Before that, {X} had [b-a=r] {i}.",
    ),
    template(
        "collecting.gave_away", "a:n b:n",
        "{X} started the day with {a} {i}. {He} gave some of them to {Y} and had {b} {i} left. "
        "How many {i} did {X} give to {Y}?",
        "{X} gave away [a-b=r] {i}.",
    ),
    template(
        "collecting.had_first", "a:n b:n",
        "{X} gave {a} {i} to {Y} and still has {b} {i}. How many {i} did {X} have at first?",
        "At first {X} had [a+b=r] {i}.",
    ),
    template(
        "comparison.more_than", "a:n b:n",
        "{X} has {a} {i}. {Y} has {b} more {i} than {X}. How many {i} does {Y} have?",
        "{Y} has [a+b=r] {i}.",
    ),
    template(
        "comparison.fewer_than", "a:n b:n",
        "{X} picked {a} {i}. {Y} picked {b} fewer {i} than {X}. How many {i} did {Y} pick?",
        "{Y} picked [a-b=r] {i}.",
    ),
    template(
        "comparison.difference", "a:n b:n",
        "{X} has {a} {i} and {Y} has {b} {i}. How many more {i} does {X} have than {Y}?",
        "{X} has [a-b=r] more {i} than {Y}.",
    ),
    template(
        "comparison.times", "a:n k:k",
        "{X} has {a} {i}. {Y} has {k} times as many {i} as {X}. How many {i} does {Y} have?",
        "{Y} has [a*k=r] {i}.",
    ),
    template(
        "shopping.cost", "a:k b:n",
        "{X} buys {a} {i}. Each {i1} costs {b} dollars. How many dollars does {X} pay?",
        "{X} pays [a*b=r] dollars.",
    ),
    template(
        "shopping.unit_price", "k:k m:n t=k*m",
        "{X} paid {t} dollars for {k} {i}, and every {i1} had the same price. "
        "How many dollars did one {i1} cost?",
        "One {i1} cost [t/k=r] dollars.",
    ),
    template(
        "shopping.how_many", "k:k m:n t=k*m",
        "One {i1} costs {k} dollars. {X} spends {t} dollars on {i}. How many {i} does {X} buy?",
        "{X} buys [t/k=r] {i}.",
    ),
    template(
        "money.change", "a:n b:n",
        "{X} pays with {a} dollars for a lunch that costs {b} dollars. "
        "How many dollars does {X} get back?",
        "{X} gets back [a-b=r] dollars.",
    ),
    template(
        "money.saving", "a:k k:k",
        "{X} saves {a} dollars every week. How many dollars has {X} saved after {k} weeks?",
        "{X} has saved [a*k=r] dollars.",
    ),
    template(
        "sharing.equal", "k:k m:n t=k*m",
        "{t} {i} are shared equally among {k} children. How many {i} does each child get?",
        "Each child gets [t/k=r] {i}.",
    ),
    template(
        "sharing.groups", "k:k m:n t=k*m",
        "{X} puts {t} {i} into bags with {k} {i} in each bag. How many bags does {X} fill?",
        "{X} fills [t/k=r] bags.",
    ),
    template(
        "packing.boxes", "a:k b:n",
        "There are {a} boxes with {b} {i} in each box. How many {i} are there altogether?",
        "There are [a*b=r] {i} altogether.",
    ),
    template(
        "rates.reading", "a:n k:k",
        "{X} reads {a} pages every day. How many pages does {X} read in {k} days?",
        "{X} reads [a*k=r] pages.",
    ),
    template(
        "distance.speed", "a:n k:k",
        "{X} rides a bicycle at {a} miles an hour for {k} hours. How many miles does {X} ride?",
        "{X} rides [a*k=r] miles.",
    ),
    template(
        "distance.left", "a:n b:n",
        "{X} walks to a town that is {a} miles away. {He} has walked {b} miles so far. "
        "How many miles does {X} still have to walk?",
        "{X} still has to walk [a-b=r] miles.",
    ),
    template(
        "time.minutes", "a:n b:n",
        "{X} practised the piano for {a} minutes on Monday and {b} minutes on Tuesday. "
        "For how many minutes did {X} practise in total?",
        "{X} practised for [a+b=r] minutes in total.",
    ),
    template(
        "ages.future", "a:n k:k",
        "{X} is {a} years old. How old will {X} be in {k} years?",
        "In {k} years {X} will be [a+k=r] years old.",
    ),
    template(
        "ages.past", "a:n k:k",
        "{X} is {a} years old. How old was {X} {k} years ago?",
        "{k} years ago {X} was [a-k=r] years old.",
    ),
    template(
        "percent.part", "a:n p:p",
        "There are {a} children in a club. {p} percent of them play chess. "
        "How many children play chess?",
        "The number of children who play chess is [a*p/100=r].",
    ),
    template(
        "garden.rows", "a:k b:k",
        "{X} plants {a} rows of carrots with {b} carrots in each row. "
        "How many carrots does {X} plant?",
        "{X} plants [a*b=r] carrots.",
    ),
)  # fmt: skip
