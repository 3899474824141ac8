# /// script
# dependencies = ["rq==3.0.0", "redis==5.3.1", "hiredis==3.5.0"]
# [tool.peer]
# title = "RQ Worker (fork, JSON)"
# rate = 100
# acknowledges = true
# note = "a lost job fails; run again only with Retry, after 810 s by default"
# left = ["LLEN", "rq:queue:bench"]
# work = ["{bin}/rq", "worker", "-u", "{url}", "-S", "json", "--quiet", "bench"]
# ///
"""Stock RQ as it comes: one fork a job. Nothing else differs from the SimpleWorker, see there."""

from commands import main
from with_rq_simple import fill, trips

if __name__ == "__main__":
    main(fill, trips)
