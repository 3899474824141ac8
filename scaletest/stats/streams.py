"""Figures of streamed answers: time to the first token, time for each further one, and tokens."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model.attempt import Attempt
from scaletest.model.writing import Written
from scaletest.stats.percentiles import Distribution, summarise_samples


@dataclass(frozen=True, slots=True)
class StreamFigures(Written):
    """Of successful streams. Times in seconds."""

    first: Annotated[Distribution, "from the start of a request to its first token"]
    per_token: Annotated[Distribution, "(latency - time to the first token) / (tokens - 1)"]
    tokens_per_s: Annotated[float, "output tokens of all streams together"]
    output_tokens: Annotated[float, "mean length of an answer"]
    prompt_tokens: Annotated[float | None, "mean length of a prompt; null if unknown"]
    counts_chunks: Annotated[bool, "whether chunks were counted, since the server counts no tokens"]


def summarise_streams(succeeded: Sequence[Attempt], seconds: float) -> StreamFigures | None:
    """Return the figures of attempts that succeeded in this time; None without streams."""
    streams = [attempt for attempt in succeeded if attempt.first_s is not None]
    if not streams:
        return None
    prompts = [attempt.prompt_tokens for attempt in streams if attempt.prompt_tokens]
    return StreamFigures(
        first=summarise_samples(
            attempt.first_s - attempt.due_s for attempt in streams if attempt.first_s is not None
        ),
        per_token=summarise_samples(
            attempt.per_token_s for attempt in streams if attempt.per_token_s is not None
        ),
        tokens_per_s=sum(attempt.tokens for attempt in streams) / seconds if seconds > 0 else 0.0,
        output_tokens=statistics.fmean(attempt.tokens for attempt in streams),
        prompt_tokens=statistics.fmean(prompts) if prompts else None,
        counts_chunks=any(attempt.counts_chunks for attempt in streams),
    )
