"""The parts of ``peers_bench.py``; a line uses the lines above it.

    rows         what is measured: the functions called, the rows, the candidates
    loops        the timed loops, one a mode of calling
    record       one run's figures, and what they were measured with; to and from JSON
    measuring    a row: candidates interleaved, round by round
    breakers     the rivals' circuit breakers
    others       the rivals' bulkheads, stacks and timeouts
    ours         seawall's adapters
    contention   many threads through one guard
    making       memory and time of creation
    limits       what must hold, as data, and the verdicts
    report       tables for the terminal
    callgrind    instructions instead of time
    page         the Markdown page of several runs (results.py writes it)
    words        what that page says besides figures
"""
