"""Servers that misbehave on command, for demos and tests: what the wall protects from, at hand.

``target.py`` is the server, ``answers.py`` what it says, ``modes.py`` how it can misbehave and what it counts,
``wire.py`` its HTTP/1.1; ``running.py`` runs it until a signal, or in a thread beside a test.
"""
