"""A saturation run in every form that a validation has. What is said is made in `words`, once for
all forms.
"""
