"""What options say about requests over HTTP."""

from dataclasses import dataclass

# Endpoints of OpenAI-compatible services.
CHAT, COMPLETIONS = "chat", "completions"
PATHS = {CHAT: "/v1/chat/completions", COMPLETIONS: "/v1/completions"}


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Which requests are sent over HTTP: any, or prompts of an OpenAI-compatible service."""

    method: str
    payload: str
    headers: tuple[str, ...]
    openai: str | None = None  # chat or completions; None for any other request
    model: str = ""
    prompt_tokens: int = 0
    output_tokens: int = 0
    shared_prefix: int = 0
    replica_header: str = ""
