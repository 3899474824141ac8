"""What a worker can run. One file a workload; base.py says what a workload is."""
