"""What stamps of workloads say: durations between milestones, their spread, books, thresholds, two runs compared.

Pure. A duration has both ends from one clock wherever one clock saw both; what was not seen is missing and counted,
never zero and never guessed.
"""
