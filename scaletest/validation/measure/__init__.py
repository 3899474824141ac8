"""What a validation does to workers, queues and Deployments while it measures."""
