"""Queue state as metrics: Prometheus and OpenMetrics text, and JSON for KEDA.

Every number is read from Redis on request. The only state here is how many workers were needed
during the last minute. When Redis is away, a scrape says so and contains no other number.

This package does not call Redis itself and does not scale anything.
"""
