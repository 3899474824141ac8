"""The charts of a validation: each file makes charts of one kind, and the sentence that stands
under them.
"""
