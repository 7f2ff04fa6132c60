"""Word problems of three steps. See word_template.py for the notation."""

from __future__ import annotations

from verigrad.problems.word_template import Template, template

THREE_STEPS: tuple[Template, ...] = (
    template(
        "collecting.three_days", "a:n b:n k:k c:n",
        "{X} found {a} {i} on Monday and {b} {i} on Tuesday. On Wednesday {he} found {k} times as "
        "many as on Monday and Tuesday together. {He} gave {c} of the {i} from Wednesday to {Y}. "
        "How many of the {i} from Wednesday does {X} still have?",
        "On Monday and Tuesday {X} found [a+b=s] {i}.",
        "On Wednesday {X} found [s*k=u] {i}.",
        "{X} still has [u-c=r] of them.",
    ),
    template(
        "comparison.three_people", "a:n b:n k:k",
        "{X} has {a} {i}. {Y} has {b} more {i} than {X}. {Z} has {k} times as many {i} as {Y}. "
        "How many {i} do {Y} and {Z} have together?",
        "{Y} has [a+b=s] {i}.",
        "{Z} has [s*k=u] {i}.",
        "Together {Y} and {Z} have [s+u=r] {i}.",
    ),
    template(
        "shopping.two_kinds_change", "a:k b:k c:n d:n",
        "{X} buys {a} {i} for {b} dollars each and one bag for {c} dollars. {He} pays with {d} "
        "dollars. How many dollars does {X} get back?",
        "The {i} cost [a*b=s] dollars.",
        "With the bag, {X} must pay [s+c=u] dollars.",
        "{X} gets back [d-u=r] dollars.",
    ),
    template(
        "money.save_and_spend", "a:n b:k k:k c:n",
        "{X} has {a} dollars. {He} saves {b} dollars every week for {k} weeks and then buys a game "
        "for {c} dollars. How many dollars does {X} have left?",
        "In {k} weeks {X} saves [b*k=s] dollars.",
        "Then {X} has [a+s=u] dollars.",
        "After buying the game, {X} has [u-c=r] dollars left.",
    ),
    template(
        "sharing.lost_then_shared", "a:n b:n c:n k:k",
        "{X} has {a} {i} and {Y} has {b} {i}. They put them together, throw away {c} that are "
        "broken and share the rest equally among {k} friends. How many {i} does each friend get?",
        "Together they have [a+b=s] {i}.",
        "After throwing some away, [s-c=u] {i} are left.",
        "Each friend gets [u/k=r] {i}.",
    ),
    template(
        "packing.two_sizes", "a:k b:k c:k d:k",
        "{X} fills {a} large boxes with {b} {i} each and {c} small boxes with {d} {i} each. "
        "How many {i} are in the boxes?",
        "The large boxes hold [a*b=s] {i}.",
        "The small boxes hold [c*d=u] {i}.",
        "Altogether there are [s+u=r] {i}.",
    ),
    template(
        "rates.two_machines", "a:k b:k k:k",
        "One machine makes {a} toys an hour and another makes {b} toys an hour. "
        "How many toys do both machines make in {k} hours?",
        "The first machine makes [a*k=s] toys.",
        "The second machine makes [b*k=u] toys.",
        "Both together make [s+u=r] toys.",
    ),
    template(
        "distance.there_and_on", "a:n k:k b:n l:k",
        "{X} drives {a} miles an hour for {k} hours and then {b} miles an hour for {l} hours. "
        "How many miles does {X} drive in all?",
        "First {X} drives [a*k=s] miles.",
        "Then {X} drives [b*l=u] miles.",
        "In all {X} drives [s+u=r] miles.",
    ),
    template(
        "ages.three_sum", "a:k b:k k:k",
        "{X} is {a} years old. {Y} is {b} years older than {X}. {Z} is {k} times as old as {X}. "
        "How many years are the ages of {Y} and {Z} together?",
        "{Y} is [a+b=s] years old.",
        "{Z} is [a*k=u] years old.",
        "Together their ages are [s+u=r] years.",
    ),
    template(
        "percent.rest_shared", "a:n p:p k:k",
        "A baker has {a} rolls. {p} percent of them are sold in the morning. The rest are put into "
        "{k} bags, the same number in each. How many rolls are in each bag?",
        "In the morning the number of rolls sold is [a*p/100=s].",
        "The number of rolls left is [a-s=u].",
        "Each bag holds [u/k=r] rolls.",
    ),
    template(
        "garden.beds", "a:k b:k c:n k:k",
        "{X} plants {a} rows of tulips with {b} tulips in each row. {c} of them do not grow. "
        "{He} ties the others into bunches of {k}. How many bunches does {X} get?",
        "{X} plants [a*b=s] tulips.",
        "The number that grow is [s-c=u].",
        "{X} gets [u/k=r] bunches.",
    ),
    template(
        "time.homework", "a:k b:k c:n d:n",
        "{X} needs {a} minutes for each of {b} exercises and {c} minutes for a drawing. {He} has "
        "{d} minutes. How many minutes are left when everything is done?",
        "The exercises take [a*b=s] minutes.",
        "With the drawing it is [s+c=u] minutes.",
        "The number of minutes left is [d-u=r].",
    ),
)  # fmt: skip
