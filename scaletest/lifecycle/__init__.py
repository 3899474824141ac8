"""How fast does the cluster bring workloads up: submit N objects, watch what becomes of them, write
down when.

Speaks to the cluster through `scaletest.cluster` only. What the stamps say is for
`scaletest.lifecycle.judging`, what people see of it for `scaletest.lifecycle.report.report`;
nothing is computed or drawn here.
"""
