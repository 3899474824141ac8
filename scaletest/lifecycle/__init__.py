"""How fast does the cluster bring workloads up: submit N objects, watch what becomes of them, write
down when.

Speaks to the cluster through `scaletest.cluster` only. What the stamps say is for
`scaletest.analysis.lifecycle`, what people see of it for `scaletest.report.lifecycle`; nothing is
computed or drawn here.
"""
