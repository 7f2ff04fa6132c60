"""Names and things of the generated word problems."""

from __future__ import annotations

NAMES: tuple[tuple[str, str], ...] = (
    ("Anna", "she"), ("Ben", "he"), ("Carla", "she"), ("David", "he"), ("Emma", "she"),
    ("Felix", "he"), ("Grace", "she"), ("Henry", "he"), ("Iris", "she"), ("Jack", "he"),
    ("Kate", "she"), ("Leo", "he"), ("Maria", "she"), ("Noah", "he"), ("Olivia", "she"),
    ("Paul", "he"), ("Rosa", "she"), ("Sam", "he"), ("Tina", "she"), ("Victor", "he"),
    ("Wendy", "she"), ("Adam", "he"), ("Bella", "she"), ("Omar", "he"), ("Lina", "she"),
    ("Tom", "he"), ("Nora", "she"), ("Max", "he"), ("Julia", "she"), ("Peter", "he"),
)  # fmt: skip
"""First names with their pronoun."""

THINGS: tuple[tuple[str, str], ...] = (
    ("apple", "apples"), ("ball", "balls"), ("banana", "bananas"), ("bead", "beads"),
    ("book", "books"), ("button", "buttons"), ("candle", "candles"), ("card", "cards"),
    ("coin", "coins"), ("cookie", "cookies"), ("cup", "cups"), ("egg", "eggs"),
    ("flower", "flowers"), ("lemon", "lemons"), ("marble", "marbles"), ("muffin", "muffins"),
    ("notebook", "notebooks"), ("nut", "nuts"), ("orange", "oranges"), ("peach", "peaches"),
    ("pear", "pears"), ("pen", "pens"), ("pencil", "pencils"), ("photo", "photos"),
    ("plum", "plums"), ("ribbon", "ribbons"), ("rose", "roses"), ("shell", "shells"),
    ("stamp", "stamps"), ("sticker", "stickers"), ("stone", "stones"), ("toy", "toys"),
)  # fmt: skip
"""Things that can be counted, given away, bought and shared: singular and plural."""
