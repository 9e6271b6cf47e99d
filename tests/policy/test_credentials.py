"""The values of credential files: each format gives its secrets, and nothing that is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.policy.secret_formats import values_of


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        (".netrc", "machine a.org login me password pa55w0rd\ndefault login x password other", ["pa55w0rd", "other"]),
        (
            ".aws/credentials",
            "[default]\naws_access_key_id = AKIAX\naws_secret_access_key = abc/def+ghi\n",
            ["AKIAX", "abc/def+ghi"],
        ),
        (".config/gh/hosts.yml", "github.com:\n    user: me\n    oauth_token: gho_x1\n", ["gho_x1"]),
        (".git-credentials", "https://me:t0ken@github.com\nhttps://you@b.org\n", ["t0ken"]),
        (".npmrc", "//registry.npmjs.org/:_authToken=npm_x\nregistry=https://r.org/\n", ["npm_x"]),
        (".pypirc", "[pypi]\nusername = __token__\npassword = pypi-x\n", ["pypi-x"]),
        (".pgpass", "host:5432:db:me:pa55\n# a comment\n", ["pa55"]),
        (".vault-token", "hvs.x\n", ["hvs.x"]),
        (".docker/config.json", '{"auths": {"r.io": {"auth": "bWU6eA=="}}, "credsStore": "x"}', ["bWU6eA=="]),
        (".docker/config.json", "no json", []),
        (".cargo/credentials.toml", '[registry]\ntoken = "cio1"\n', ["cio1"]),
        (
            ".env",
            'PORT=8080\nexport API_TOKEN="a b"\nDB=postgres://u:pw1@h/d\nRANDOM=aB3dE5fG7hI9jK1lM3nO\nTOKEN=$OTHER\n',
            ["a b", "pw1", "aB3dE5fG7hI9jK1lM3nO"],
        ),
    ],
)
def test_a_file_gives_its_secrets(name: str, text: str, values: list[str]) -> None:
    assert list(values_of(f"/home/me/{name}", text)) == values


@given(st.sampled_from([".netrc", ".env", "config.json", ".pgpass", ".git-credentials"]), st.text())
def test_any_text_can_be_looked_through(name: str, text: str) -> None:
    list(values_of(name, text))
