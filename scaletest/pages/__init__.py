"""What all web applications share: the look of pages, checks of requests, and refusals.

`site` makes an application that checks every request before its views see it. Its style sheet has
the colours of the reports; no page refers to another host, and none needs a script.
"""
