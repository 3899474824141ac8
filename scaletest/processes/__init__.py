"""Processes that never outlive their parent, and helpers that wake or repeat work inside one."""
