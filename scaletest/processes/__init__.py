"""Processes that never outlive their parent, and what wakes or repeats work inside one."""
