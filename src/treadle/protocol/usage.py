"""What models used."""

from treadle.protocol.base import Record


class Usage(Record, frozen=True, kw_only=True):
    """Tokens of one model call, or their sum, and the searches of the web that the provider made by itself.

    `input_tokens` does not contain the cached ones. Of those that were written to the cache, `cache_write_hour_tokens`
    were written for an hour, which costs more than for some minutes. `estimated`: a part of it, or of the cost, is our
    own estimate: the provider did not say what was used, or cannot be right, or the price is that of a relative.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_hour_tokens: int = 0
    reasoning_tokens: int = 0
    searches: int = 0
    estimated: bool = False

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            cache_write_hour_tokens=self.cache_write_hour_tokens + other.cache_write_hour_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            searches=self.searches + other.searches,
            estimated=self.estimated or other.estimated,
        )

    @property
    def request_tokens(self) -> int:
        """Tokens that the request had, those in the provider's cache included."""
        return self.context_tokens - self.output_tokens

    @property
    def context_tokens(self) -> int:
        """Tokens that the conversation takes after this call."""
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens
