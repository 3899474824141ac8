"""The search for saturation as a run: order a step, take its samples, store them, ask analysis what
comes next.

It decides nothing (`analysis.saturation` does) and knows neither HTTP nor queues: a load is
anything that can be ordered to (`load.level_load`).
"""
