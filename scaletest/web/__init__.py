"""The pages of the client: what its load does, for people, scripts and Prometheus, over HTTP.

Everything is made from a snapshot of the statistics, so that no browser slows the load. No page names another host, and
every text that comes from outside is escaped. Nothing here speaks Redis.
"""
