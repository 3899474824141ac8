"""Queue state as metrics: Prometheus and OpenMetrics text, JSON for KEDA, a small page for people.

Every number is read from Redis when it is asked for; nothing is kept here that a restart could lose, but how many
workers were wanted during the last minute. When Redis is away that is what is said, and no number.

This room does not speak Redis itself and does not scale anything.
"""
