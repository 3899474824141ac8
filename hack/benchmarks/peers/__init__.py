"""Our worker beside other task queues, each in an environment of its own."""
