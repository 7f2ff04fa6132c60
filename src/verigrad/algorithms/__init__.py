"""Numbers to numbers: advantages, ratios, trust regions, reductions, KL; and the presets.

Pure functions of tensors: no model, file, clock or random number. ``presets``, ``describe`` and
``checks`` load without torch. Shapes: P prompts, G group, B completions, T completion tokens, N
part rewards, V vocabulary.
"""
