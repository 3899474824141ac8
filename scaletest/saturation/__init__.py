"""What load a service or a queue takes: measure a step, store it, and ask what comes next.

`saturation.judging` decides, and knows neither HTTP nor queues: a load is anything that can be
ordered to (`load.level_load`).
"""
