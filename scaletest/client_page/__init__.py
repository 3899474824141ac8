"""The client's web pages and HTTP API: statistics of its load for people, scripts and Prometheus.

Everything is made from a snapshot of the statistics, so that browsers do not slow the load. No page
refers to another host, and foreign text is escaped. Nothing here calls Redis.
"""
