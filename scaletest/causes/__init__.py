"""Attribution: who spent the added time of requests, and the evidence for it. Pure."""
