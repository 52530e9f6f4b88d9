"""What the benchmarks share: processes, tools, configurations, load and verdicts. Linux only (it reads /proc)."""
