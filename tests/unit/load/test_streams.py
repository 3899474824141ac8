"""Streams of tokens, and the prompts that ask for them."""

import json

import pytest

from scaletest.load.prompts import Prompts
from scaletest.load.requests import openai_url
from scaletest.load.streams import StreamReader
from scaletest.model.errors import InvalidValue

ROLE = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
WORD = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5}}\n\n'


def read(*blocks: bytes) -> StreamReader:
    """A reader of these blocks, the first of which comes at 1 s, and so on."""
    times = iter(range(1, 100))
    now = 0.0
    stream = StreamReader(lambda: now)
    for block in blocks:
        now = float(next(times))
        stream.feed(block)
    return stream


def test_the_first_token_is_the_first_text_and_usage_counts_before_chunks() -> None:
    stream = read(ROLE, WORD, WORD + WORD, USAGE, b"data: [DONE]\n\n")
    assert stream.first_at == 2.0
    assert (stream.output_tokens, stream.tokens("prompt_tokens")) == (5, 7)
    assert stream.is_complete


def test_without_usage_chunks_are_counted_however_they_are_cut() -> None:
    whole = ROLE + WORD + WORD + WORD + b"data: [DONE]\r\n\r\n"
    stream = read(*(whole[at : at + 7] for at in range(0, len(whole), 7)))
    assert stream.tokens("completion_tokens") is None
    assert stream.output_tokens == 3
    assert stream.is_complete


@pytest.mark.parametrize(
    "event", [b'data: {"error":{"message":"out of memory"}}\n', b"data: {oops\n", b"data: [1]\n"]
)
def test_an_error_or_nonsense_in_a_stream_is_a_failure(event: bytes) -> None:
    assert read(event).is_failed


def test_what_ends_before_its_last_event_is_not_complete() -> None:
    assert not read(WORD, WORD).is_complete


def test_no_two_prompts_begin_alike_unless_a_prefix_is_shared() -> None:
    def texts(shared: int) -> list[str]:
        prompts = Prompts("completions", "m", 40, 8, shared)
        return [json.loads(prompts.get(0))["prompt"] for _ in range(50)]

    alone, shared = texts(0), texts(10)
    assert {len(text.split()) for text in alone + shared} == {40}
    assert len({" ".join(text.split()[:16]) for text in alone}) == 50
    assert len({" ".join(text.split()[:10]) for text in shared}) == 1
    assert len(set(shared)) == 50
    with pytest.raises(InvalidValue, match="shared_prefix"):
        Prompts("chat", "m", 10, 8, 10)


def test_an_address_without_a_path_gets_that_of_the_endpoint() -> None:
    assert openai_url("http://h:1", "chat") == "http://h:1/v1/chat/completions"
    assert openai_url("http://h:1/v1/", "completions") == "http://h:1/v1/completions"
    assert openai_url("http://h/proxy/x", "chat") == "http://h/proxy/x"
    assert openai_url("http://h/", None) == "http://h/"
