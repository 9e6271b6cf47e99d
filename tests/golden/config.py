"""Where the golden logs were written, and how their sessions are resumed."""

from pathlib import Path

ROOT = Path("/tmp/treadle-golden")
KEY = "GOLDEN_KEY"
ARGUMENTS = ("-p", "Go on.", "--max-cost", "9")
"""How a session is resumed."""


def config(base_url: str) -> str:
    """Write settings for a model at this address."""
    provider = f'[providers.golden]\nbase_url = "{base_url}/v1"\nwire_api = "openai_chat"\napi_key_env = "{KEY}"\n'
    prices = "max_output = 2000\ninput_price = 3.0\noutput_price = 15.0\n"
    models = "".join(f'[models."golden/{name}"]\n{prices}' for name in ("main", "other"))
    return f'model = "golden/main"\n{provider}{models}'
