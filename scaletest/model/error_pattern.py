"""The pattern of an error text: what stays the same when only its circumstances change.

A program names the file, the address or the moment in each of its errors, so that equal failures
have unequal texts. Their pattern has a placeholder for each of these parts, such as `<path>`.

Every repetition without a bound stands in an atomic group, and an alternative begins only where a
word does: so no part of a text is tried again, and the time grows with the length of the text and
no faster. Possessive quantifiers would say the same, but Python 3.11.2, that of Debian 12, matches
them wrongly.
"""

import re
from functools import lru_cache

# Characters that are looked at.
MOST_READ = 2000
# Characters of a pattern.
MOST_CHARACTERS = 500

# The rest of a URL or a path ends at a space, quote, bracket or separator. Punctuation belongs to
# it only where more follows; a colon ends a path, as before the number of a line.
_REST = r"""(?>(?:(?>[.!?]*)[^\s'"<>()\[\]{}|,;*.:!?])+)"""

_PARTS = re.compile(
    rf"""
    (?P<uuid> (?<![\da-z]) [\da-f]{{8}} (?:-[\da-f]{{4}}){{3}} -[\da-f]{{12}} (?![\da-z]))
  | (?P<url> (?<![\w+.-]) [a-z](?>[a-z\d+.-]{{1,20}}) :// {_REST} (?>(?::{_REST})*))
  | (?P<time> (?<![\w.])
      (?> \d{{4}}[-/]\d\d[-/]\d\d
          (?:[T\ ]\d\d:\d\d(?::\d\d(?:[.,]\d{{1,9}})?)?(?:Z|[+-]\d\d:?\d\d)?)?
        | \d{{1,2}}:\d\d:\d\d(?:[.,]\d{{1,9}})? )
      (?!:?\d))
  | (?P<address>
      (?<!\w) 0x(?>[\da-f]+)
    | (?<![\w.]) (?> \d{{1,3}}(?:\.\d{{1,3}}){{3}} (?::\d{{1,5}})?) (?!\.?\d)
    | \[ (?=[\da-f:.]{{0,43}}:: | (?:[\da-f]{{1,4}}:){{7}}) [\da-f:.]{{2,45}} (?:%\w{{1,15}})? \]
      (?::\d{{1,5}})?
    | (?<![\w:]) [\da-f]{{4,8}} :[\da-f]{{2}}:[\da-f]{{2}}\.[0-7] (?!\w)
    | (?<![\w:]) [\da-f]{{2}}(?::[\da-f]{{2}}){{5}} (?![\w:]))
  | (?P<path>
      (?<![\w/.~<>]) (?:~|\.{{1,2}})? / {_REST}
    | (?<![\w/]) [a-z]:\\ {_REST})
  | (?P<id> (?<![\da-z]) (?=(?>[a-f]*)\d) (?=(?>\d*)[a-f]) (?>[\da-f]{{8,}}) (?![\da-z])
      (?:-[b-df-hj-np-tv-xz2-9]{{5}}(?!\w))?)
  | (?P<number>
      (?: (?<![a-z_\d])(?<!\d\.) (?:(?<!\w)[+-])? | (?<=_)(?=\d{{3}}) )
      (?>\d+) (?>(?:\.(?>\d+))*) (?:e[+-]?(?>\d+))?)
    """,
    re.IGNORECASE | re.VERBOSE | re.ASCII,
)


@lru_cache(maxsize=1024)
def pattern_of(error: str) -> str:
    """Return the error with a placeholder for every UUID, URL, time, address, path, id and number.

    It is one line of at most MOST_CHARACTERS characters. An id has at least eight hexadecimal
    digits, both letters and figures. Figures within a word stay, as in h264: they are part of a
    name.
    """
    masked = _PARTS.sub(lambda part: f"<{part.lastgroup}>", " ".join(error[:MOST_READ].split()))
    return masked[:MOST_CHARACTERS]
