"""Where a service saturates: what a step says, which comes next, what all say together. Pure.

The search is a generator that is told what each step found. So the same code decides while a run is
measured, when a stored run is judged again, and in simulations with a known truth
(tests/unit/simulated.py).
"""
