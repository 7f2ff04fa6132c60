"""The verbs of the command line, one file per family. Each ``register(app)`` adds its verbs to the
app."""
