"""The command line: one module a command, each imported only when it is called. ``say.py`` is how it speaks."""
