"""Options that describe requests over HTTP."""

import click

from scaletest.cli.headings import join_options, under_heading
from scaletest.cli.quantity import DURATION
from scaletest.model.http_options import PATHS

TOKENS = click.IntRange(1, 1_000_000)

requests = join_options(
    under_heading("Requests"),
    click.option(
        "--method",
        default="",
        metavar="NAME",
        help="Send requests with this HTTP method. [default: GET, or POST with a payload]",
    ),
    click.option(
        "--payload",
        default="",
        metavar="FILE",
        help=(
            "Send the content of this file as the body of every request; of a folder the files"
            " in turn."
        ),
    ),
    click.option(
        "-H",
        "--header",
        "headers",
        multiple=True,
        metavar="'NAME: VALUE'|@FILE",
        help=(
            "Send this HTTP header, or those in the lines of a file, as for credentials; the"
            " option may be repeated."
        ),
    ),
    click.option(
        "--openai",
        type=click.Choice(list(PATHS)),
        help=(
            "Send prompts to an OpenAI-compatible service, no two alike, and measure the streamed"
            " tokens."
        ),
    ),
    click.option("--model", default="", metavar="NAME", help="Ask this model, with --openai."),
    click.option(
        "--prompt-tokens",
        type=TOKENS,
        default=256,
        show_default=True,
        metavar="N",
        help="Send prompts of about N tokens, with --openai.",
    ),
    click.option(
        "--output-tokens",
        type=TOKENS,
        default=64,
        show_default=True,
        metavar="N",
        help="Ask for answers of N tokens, with --openai.",
    ),
    click.option(
        "--shared-prefix",
        type=int,
        default=0,
        metavar="N",
        help="Begin all prompts with the same N tokens, which a prefix cache may serve.",
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=DURATION,
        default="30s",
        show_default=True,
        metavar="TIME",
        help="Count a request that has no answer within this time as failed.",
    ),
    click.option(
        "--replica-header",
        default="",
        metavar="NAME",
        help="Read from this header of an answer which replica sent it.",
    ),
)
