"""A replica of an inference service that saturates as real ones do, for tests, on loopback.

python -m hack.inference [--slots 8] [--step 0.02] [--step-each 0.001] [--port 0] ...

A batch of at most --slots requests decodes one token for each of them in every step, and a step
takes longer the more requests are in it; further requests queue. Steps are computed in virtual
time, so the capacity is what the options say even when this process wakes up late. It answers
/v1/completions and /v1/chat/completions, streamed with usage or whole, /health, and /metrics under
vLLM's names. The replica prints its port, and ends when its standard input does.

Each pitfall of a measurement is an option: --start and --cold (ready late, and slow when ready),
--slow (a slower machine), --cache (of prompts), --reject (429 beyond a queue), --freeze and --crash
(after so many seconds), --half-close (cut streams), --ragged (answers of different lengths).
"""

import argparse
import asyncio
import itertools
import json
import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hack.service import RequestReader
from scaletest.load.exact_timers import new_loop

END = b"0\r\n\r\n"
# What a client gets that asks for nothing else, as in vLLM.
USUAL_TOKENS = 16
# A cold replica's steps take this many times as long.
COLD_FACTOR = 4.0
# Tokens of a prompt are cached in blocks of this many.
BLOCK = 16


@dataclass(eq=False)
class Generation:
    """A request from its arrival to its last token."""

    prompt: list[str]
    tokens: int  # to generate
    send: Callable[[int, bool], None]  # called with the number of the token, and whether it is last
    done: int = 0


@dataclass
class Replica:
    """Slots, a queue, and steps in virtual time."""

    options: argparse.Namespace
    running: list[Generation] = field(default_factory=list)
    waiting: deque[Generation] = field(default_factory=deque)
    counts: Counter[str] = field(default_factory=Counter)
    cached: set[str] = field(default_factory=set)
    is_stepping: bool = False
    most_held: int = 0  # requests at one time

    def __post_init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.ready_at = self.loop.time() + self.options.start
        self.warm_at = self.ready_at + self.options.cold
        self.freezes_at = self.loop.time() + self.options.freeze if self.options.freeze else None
        self.step_ends = 0.0

    @property
    def is_ready(self) -> bool:
        return self.loop.time() >= self.ready_at

    @property
    def is_frozen(self) -> bool:
        return self.freezes_at is not None and self.loop.time() >= self.freezes_at

    def submit(self, generation: Generation) -> None:
        """Take a request into the batch, or into the queue."""
        self.waiting.append(generation)
        self.most_held = max(self.most_held, len(self.running) + len(self.waiting))
        if not self.is_stepping:
            self.step_ends = self.loop.time()
            self._step()

    def _step(self) -> None:
        options, prefill_s = self.options, 0.0
        while self.waiting and len(self.running) < options.slots:
            admitted = self.waiting.popleft()
            prefill_s += self._prefill(admitted.prompt)
            self.running.append(admitted)
        self.is_stepping = bool(self.running)
        if not self.running:
            return
        factor = options.slow * (COLD_FACTOR if self.loop.time() < self.warm_at else 1.0)
        takes_s = options.step + options.step_each * len(self.running) + prefill_s
        self.step_ends += takes_s * factor
        self.loop.call_at(self.step_ends, self._end_step)

    def _end_step(self) -> None:
        if self.is_frozen:
            return
        for generation in list(self.running):
            generation.done += 1
            is_last = generation.done >= generation.tokens
            self.counts["generation"] += 1
            if is_last:
                self.running.remove(generation)
                self.counts["success"] += 1
            generation.send(generation.done, is_last)
        self._step()

    def _prefill(self, prompt: list[str]) -> float:
        """Return the seconds that a prompt takes; blocks that were seen before take none."""
        self.counts["prompt"] += len(prompt)
        fresh = len(prompt)
        if self.options.cache:
            known = True
            for end in range(BLOCK, len(prompt) + 1, BLOCK):
                key = " ".join(prompt[:end])
                known = known and key in self.cached
                fresh -= BLOCK if known else 0
                self.cached.add(key)
            self.counts["cache_queries"] += len(prompt)
            self.counts["cache_hits"] += len(prompt) - fresh
        return fresh * float(self.options.prefill)

    def metrics(self) -> str:
        """Return what a scrape gets."""
        rows = {
            "num_requests_running": len(self.running),
            "num_requests_waiting": len(self.waiting),
            "most_requests": self.most_held,
            "kv_cache_usage_perc": len(self.running) / self.options.slots,
            "num_preemptions_total": 0,
            "request_success_total": self.counts["success"],
            "prompt_tokens_total": self.counts["prompt"],
            "generation_tokens_total": self.counts["generation"],
            "prefix_cache_queries_total": self.counts["cache_queries"],
            "prefix_cache_hits_total": self.counts["cache_hits"],
        }
        return "".join(f'vllm:{name}{{model_name="m"}} {value}\n' for name, value in rows.items())


class HttpServer(RequestReader):
    """Answers in chunks, as a stream has them."""

    def begin(self, status: int = 200, kind: str = "application/json", extra: str = "") -> None:
        self._write(
            f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\n{extra}"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
        )

    def chunk(self, text: str, *, is_last: bool = False) -> None:
        block = text.encode()
        framed = b"%x\r\n%b\r\n" % (len(block), block) if block else b""
        self._write(framed + (END if is_last else b""))

    def answer(self, status: int, text: str, extra: str = "") -> None:
        self.begin(status, extra=extra)
        self.chunk(text, is_last=True)

    def _write(self, block: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(block)


class Api(HttpServer):
    """What a client calls."""

    def __init__(self, replica: Replica, numbers: Iterator[int]) -> None:
        super().__init__()
        self._replica, self._numbers = replica, numbers

    def serve(self, head: bytes, body: bytes) -> None:
        replica, path = self._replica, head.decode("latin-1").split(" ", 2)[1]
        if replica.is_frozen:
            return
        if path == "/metrics":
            self.answer(200, replica.metrics())
        elif path == "/reset_prefix_cache":
            replica.cached.clear()
            self.answer(200, "{}")
        elif not replica.is_ready:
            self.answer(503, '{"error": "the model is loading"}')
        elif path in ("/v1/completions", "/v1/chat/completions"):
            self._generate(path, json.loads(body), next(self._numbers))
        else:
            self.answer(200 if path == "/health" else 404, "{}")

    def _generate(self, path: str, wanted: dict[str, Any], number: int) -> None:
        replica, options = self._replica, self._replica.options
        name = f"X-Replica: {options.name}\r\n"
        if options.reject is not None and len(replica.waiting) > options.reject:
            self.answer(429, '{"error": "too many requests"}', name)
            return
        is_chat = path.endswith("/chat/completions")
        words, tokens = _prompt(wanted).split(), int(wanted.get("max_tokens", USUAL_TOKENS))
        tokens = max(1, tokens * (1 + number % 7) // 4) if options.ragged else tokens
        usage = {"prompt_tokens": len(words), "completion_tokens": tokens}
        if not wanted.get("stream"):

            def send_whole(done: int, is_last: bool) -> None:
                if is_last:
                    text = "word " * done
                    choice = {"message": {"content": text}} if is_chat else {"text": text}
                    self.answer(200, json.dumps({"choices": [choice], "usage": usage}), name)

            replica.submit(Generation(words, tokens, send_whole))
            return
        is_cut = options.half_close and number % options.half_close == 0
        is_told = wanted.get("stream_options", {}).get("include_usage") and not options.no_usage

        def send_token(done: int, is_last: bool) -> None:
            if done == 1:
                # not earlier: Go's proxies cut an answer that begins while they still read
                self.begin(kind="text/event-stream", extra=name)
                if is_chat:
                    role = {"index": 0, "delta": {"role": "assistant", "content": ""}}
                    self.chunk(f"data: {json.dumps({'choices': [role]})}\n\n")
            if is_cut and done > 1:
                self.transport.close()
                return
            text = _piece(is_chat, is_last)
            if is_last:
                if is_told:
                    text += f"data: {json.dumps({'choices': [], 'usage': usage})}\n\n"
                text += "data: [DONE]\n\n"
            self.chunk(text, is_last=is_last)

        replica.submit(Generation(words, tokens, send_token))


def _prompt(wanted: dict[str, Any]) -> str:
    """Return the text that shall be continued."""
    return str(wanted["messages"][-1]["content"] if "messages" in wanted else wanted["prompt"])


def _piece(is_chat: bool, is_last: bool) -> str:
    """Return the event of a token."""
    word = {"delta": {"content": "word "}} if is_chat else {"text": "word "}
    choice = {"index": 0, **word, "finish_reason": "length" if is_last else None}
    return f"data: {json.dumps({'choices': [choice]})}\n\n"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what a replica is like, which its front passes on."""
    for name, usual in (
        ("slots", 8),
        ("step", 0.02),
        ("step-each", 0.001),
        ("prefill", 0.0),
        ("start", 0.0),
        ("cold", 0.0),
        ("slow", 1.0),
        ("freeze", 0.0),
        ("crash", 0.0),
        ("half-close", 0),
    ):
        parser.add_argument(f"--{name}", type=type(usual), default=usual)
    parser.add_argument("--reject", type=int)
    for name in ("cache", "ragged", "no-usage"):
        parser.add_argument(f"--{name}", action="store_true")


def end_with_input() -> asyncio.Event:
    """Return an event for the end of standard input, which is that of who started us."""
    ended, loop = asyncio.Event(), asyncio.get_running_loop()

    def read() -> None:
        if not sys.stdin.buffer.raw.read(4096):  # type: ignore[attr-defined]
            loop.remove_reader(sys.stdin)
            ended.set()

    loop.add_reader(sys.stdin, read)
    return ended


async def serve(options: argparse.Namespace) -> None:
    """Serve until standard input ends."""
    replica, numbers = Replica(options), itertools.count(1)
    if options.crash:
        replica.loop.call_later(options.crash, os._exit, 1)
    server = await asyncio.get_running_loop().create_server(
        lambda: Api(replica, numbers), options.host, options.port, backlog=4096
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await end_with_input().wait()
    server.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser)
    parser.add_argument("--name", default="replica-0")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
