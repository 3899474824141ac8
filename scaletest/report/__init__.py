"""What people and programs read about a run. Everything printed here also stands in the JSON
result.
"""
