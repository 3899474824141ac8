"""RQ's own tests, with our worker in place of SimpleWorker and JSON in place of pickle."""
