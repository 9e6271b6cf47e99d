"""Names that are protected wherever they stand: control files from writing, secrets from reading."""

import posixpath
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from treadle.policy.marks import MARKS, STAR, UNKNOWN, fits, is_static, split_words


@dataclass(frozen=True, slots=True)
class _Names:
    """Names to compare with: those spelled out, and those with wildcards as one expression."""

    exact: frozenset[str]
    patterns: re.Pattern[str]

    def fits(self, name: str) -> bool:
        return name in self.exact or self.patterns.fullmatch(name) is not None


def _names(listed: Iterable[str]) -> _Names:
    names = frozenset(listed)
    wild = sorted(name for name in names if "*" in name)
    return _Names(names - frozenset(wild), re.compile("|".join(re.escape(name).replace(r"\*", ".*") for name in wild)))


_CONTROL_DIRECTORIES = frozenset(
    split_words("""
    .git .treadle .claude .cursor .codex .gemini .cline .clinerules .roo .kilocode .continue .windsurf .opencode .kiro
    .augment .qwen .goose .crush .factory .junie .trae .amp .agents .agent .aider .vscode .vscode-server .idea .fleet
    .zed .emacs.d .amazonq .openhands .warp .void .hg .svn .jj .circleci .buildkite .direnv .ipython .lefthook
    .git-hooks .husky .githooks .devcontainer .ssh .gnupg .aws .kube .azure .password-store launchagents launchdaemons
    cron.d cron.daily cron.hourly sudoers.d profile.d init.d
""")
)
_CONTROL_FILES = split_words("""
    .gitmodules .gitconfig .mcp.json mcp.json .envrc .direnvrc *.code-workspace .bashrc .bash_profile .bash_login
    .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login
    .logout .inputrc .xinitrc .xprofile .xsession .xsessionrc .pam_environment .vimrc .gvimrc .exrc .nvimrc .emacs
    .tmux.conf .screenrc .gdbinit .lldbinit .pythonrc .pythonrc.py .irbrc .pryrc .rprofile .psqlrc .sqliterc .my.cnf
    .curlrc .wgetrc .ripgreprc .nanorc .hushlogin .rhosts .forward .lesskey .npmrc .yarnrc .yarnrc.* .pnpmfile.cjs
    .pypirc .netrc _netrc .git-credentials .condarc .gemrc .pre-commit-config.yaml .pre-commit-config.yml lefthook.yml
    .lefthook.yml lefthook.yaml .mise.toml mise.toml agents.md agents.override.md agent.md claude.md claude.local.md
    gemini.md qwen.md copilot-instructions.md .rules .cursorrules .cursorignore .windsurfrules .clinerules .roorules
    .goosehints .roomodes .aider.conf.yml .aiderignore .clineignore .agentignore .treadleignore sitecustomize.py
    usercustomize.py opencode.json .crush.json .augment-guidelines .dir-locals.el .lvimrc .nvim.lua *.sublime-project
    .hgrc .mailcap .pdbrc .gitlab-ci.yml .travis.yml .drone.yml .woodpecker.yml azure-pipelines.yml
    bitbucket-pipelines.yml jenkinsfile authorized_keys authorized_keys2 known_hosts crontab sudoers shadow passwd
""")
_CONTROL_SEQUENCES = (
    (".github", "workflows"),
    (".github", "actions"),
    (".github", "instructions"),
    (".config", "autostart"),
    (".config", "fish"),
    (".config", "gh"),
    (".config", "git"),
    (".config", "nvim"),
    (".config", "pip"),
    (".config", "systemd"),
    (".config", "treadle"),
    (".config", "zsh"),
    (".docker", "config.json"),
    (".local", "bin"),
    (".pip", "pip.conf"),
    (".cargo", "config"),
    (".cargo", "config.toml"),
    (".cargo", "env"),
    (".bundle", "config"),
)

_SECRET_DIRECTORIES = frozenset(
    split_words("""
    .ssh .aws .kube .gnupg .azure .password-store .mozilla .thunderbird .1password .oci keychains keyrings
    .subversion .electrum .bitcoin .ethereum .purple .irssi .minikube .snowsql .kaggle .huggingface kwalletd kwallet
    system-connections sudoers.d
""")
)
_SECRET_FILES = split_words("""
    .env .env.* *.env .envrc .netrc _netrc .npmrc .pypirc .git-credentials .pgpass .my.cnf .mylogin.cnf .htpasswd
    .s3cfg
    .boto .dockercfg .dockerconfigjson kubeconfig *.kubeconfig .terraformrc terraform.rc credentials.tfrc.json id_rsa
    id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk *_rsa *_dsa *_ecdsa *_ed25519 *.pem *.key *.p12 *.pfx *.jks
    *.keystore *.ppk *.kdbx *.kdb *.agekey *.gpg *.keytab *.tfstate *.tfstate.* *.tfvars *.tfvars.json .vault-token
    .vault_pass .vault-password secring.* credentials credentials.json credentials.db credentials.toml
    client_secret*.json service-account*.json service_account*.json serviceaccount*.json
    application_default_credentials.json secrets.yml secrets.yaml secrets.json secrets.toml secret.yml secret.yaml
    secret.json master.key .bash_history .zsh_history .sh_history .python_history .node_repl_history .psql_history
    .mysql_history .sqlite_history .rediscli_history .lesshst .viminfo fish_history shadow shadow- gshadow gshadow-
    sudoers .rediscli_auth .pip_credentials .yarnrc.yml.secret logins.json key4.db cookies.sqlite
    .secrets .secret .token kubeconfig.* *firebase-adminsdk*.json wallet.dat
    *.p8 *.pkcs12 *.pkcs8 *.ovpn *.secret *.secrets *.credentials .dev.vars .flaskenv .databrickscfg .authinfo
    .msmtprc
    .fetchmailrc .mailrc .xauthority .iceauthority .wget-hsts .zhistory .irb_history .pry_history .rdebug_hist
    .claude.json
    .credentials.json oauth_creds.json gcp-key.json gcp_key.json sa-key.json *-credentials.json *_credentials.json
    local.settings.json ssh_host_*_key opasswd master.passwd debian.cnf chap-secrets pap-secrets wpa_supplicant.conf
    hosts.toml.token sitemanager.xml recentservers.xml .terraformrc .hg-credentials .dbshell .cookies
    cookies.binarycookies
""")
_SECRET_TEXTS = frozenset(
    split_words("""
    vault_pass.txt api_key.txt api_keys.txt apikey.txt token.txt tokens.txt password.txt passwords.txt secret.txt
    secrets.txt credentials.txt wp-config.php db_password db_root_password
""")
)
"""Names of plain texts: only a file that is there is one of them, a pattern such as `*.txt` is not."""
_SECRET_SEQUENCES = (
    (".docker", "config.json"),
    (".config", "gh"),
    (".config", "gcloud"),
    (".config", "op"),
    (".config", "hub"),
    (".config", "google-chrome"),
    (".config", "chromium"),
    (".config", "bravesoftware"),
    (".config", "git", "credentials"),
    (".config", "rclone"),
    (".config", "treadle"),
    (".config", "glab-cli"),
    (".config", "doctl"),
    (".config", "filezilla"),
    (".config", "heroku"),
    (".config", "netlify"),
    (".config", "configstore"),
    (".config", "stripe"),
    (".config", "github-copilot"),
    (".config", "code", "user", "globalstorage"),
    (".config", "slack"),
    (".config", "discord"),
    (".config", "hcloud"),
    (".config", "pypoetry"),
    (".config", "pip"),
    (".config", "openai"),
    (".config", "anthropic"),
    (".config", "lftp"),
    (".config", "msmtp"),
    (".config", "weechat"),
    (".config", "containers"),
    (".config", "helm", "registry"),
    (".config", "composer", "auth.json"),
    (".config", "solana"),
    (".config", "microsoft-edge"),
    (".config", "vivaldi"),
    (".config", "opera"),
    (".config", "linode-cli"),
    (".codex", "auth.json"),
    (".cache", "huggingface", "token"),
    (".fly", "config.yml"),
    (".railway", "config.json"),
    (".rancher", "cli2.json"),
    (".nuget", "nuget.config"),
    (".bundle", "config"),
    (".mutt",),
    ("library", "cookies"),
    ("library", "messages"),
    ("library", "safari"),
    ("etc", "wireguard"),
    ("etc", "openvpn"),
    ("etc", "kubernetes"),
    ("etc", "rancher"),
    (".cargo", "credentials"),
    (".gem", "credentials"),
    (".composer", "auth.json"),
    ("sops", "age"),
    (".m2", "settings.xml"),
    (".m2", "settings-security.xml"),
    (".gradle", "gradle.properties"),
    (".local", "share", "keyrings"),
    ("application support", "google", "chrome"),
    ("application support", "firefox"),
    ("etc", "ssl", "private"),
    ("run", "secrets"),
)
_CONTROL_FILE = _names(_CONTROL_FILES)
_SECRET_FILE = _names(_SECRET_FILES)
_PUBLIC_ENDINGS = (".example", ".sample", ".template", ".dist", ".defaults", ".tmpl", ".tpl", ".pub", ".test.example")
_PUBLIC_NAMES = frozenset({"example.env", "sample.env", "template.env", "passwd"})
_PROCESS_SECRETS = frozenset(
    {"environ", "mem", "maps", "cmdline", "auxv", "stack", "fd", "root", "cwd", "map_files", "task", "kcore", "kmem"}
)
_RAW_DEVICE = re.compile(
    r"(sd|hd|vd|xvd)[a-z]\d*|nvme\d.*|mmcblk.*|r?disk\d.*|dm-\d+|loop\d+|md\d+|mem|kmem|port|mapper|fb\d+|input|vcsa?\d*|hidraw\d+"
)
_SHORT_NAME = re.compile(r"(git|treadl|claude|cursor|vscode|env)~[0-9]+")
_COPY = re.compile(r"\.(?P<swapped>.+)\.sw[op]|(?P<copied>.+?)(?:~|\.(?:bak|backup|copy|old|orig|save|sav|\d))")
"""The name of a copy that a person, an editor or a tool keeps beside a file, with the name of the file."""
_ORDINARY_ENDINGS = (".json", ".yml", ".yaml", ".toml", ".xml", ".md", ".py", ".cnf")


def normalise(name: str) -> str:
    """Reduce one name to what some file system takes it for: case, composition, invisible characters, NTFS endings."""
    text = unicodedata.normalize("NFKC", name)
    text = "".join(char for char in text if unicodedata.category(char) != "Cf").casefold()
    text = text.split("::$", 1)[0].split(":$", 1)[0].rstrip(" .") or text
    short = _SHORT_NAME.fullmatch(text)
    return "." + {"treadl": "treadle"}.get(short.group(1), short.group(1)) if short else text


def components(path: str) -> tuple[str, ...]:
    """Split a path into normalised names; a backslash separates too, as it does on other systems."""
    return tuple(normalise(name) for name in re.split(r"[/\\]", path) if name not in ("", "."))


@lru_cache(maxsize=8192)
def control_name(path: str) -> str | None:
    """Give the name that makes a path write-protected, or None."""
    parts = components(path)
    for part in parts:
        if part in _CONTROL_DIRECTORIES:
            return part
    if parts and _CONTROL_FILE.fits(parts[-1]):
        return parts[-1]
    return _sequence(parts, _CONTROL_SEQUENCES)


@lru_cache(maxsize=8192)
def secret_name(path: str) -> str | None:
    """Give the name that makes a path read-protected, or None."""
    parts = components(path)
    for part in parts:
        if part in _SECRET_DIRECTORIES:
            return part
    if parts and _is_secret_file(parts[-1]):
        return parts[-1]
    if parts[:1] == ("proc",) and any(part in _PROCESS_SECRETS for part in (*parts[2:], *parts[1:2])):
        return "/proc"
    if parts[:1] == ("dev",) and len(parts) > 1 and _RAW_DEVICE.fullmatch(parts[1]):
        return "/dev/" + parts[1]
    return _sequence(parts, _SECRET_SEQUENCES)


def _is_secret_file(name: str) -> bool:
    while True:
        if name.endswith(_PUBLIC_ENDINGS) or name in _PUBLIC_NAMES:
            return False
        if name in _SECRET_TEXTS or _SECRET_FILE.fits(name):
            return True
        copy = _COPY.fullmatch(name)
        if copy is None:
            return False
        name = copy["swapped"] or copy["copied"]


def _sequence(parts: tuple[str, ...], sequences: Iterable[tuple[str, ...]]) -> str | None:
    joined = f"/{'/'.join(parts)}/"
    return next((name for name in map("/".join, sequences) if f"/{name}/" in joined), None)


@lru_cache(maxsize=8192)
def pattern_hits(path: str, *, writing: bool) -> str | None:
    """Give a protected name that a path with unknown parts could stand for, or None.

    A part that is nothing but wildcards is too vague to
    count, and so is one like `*.json`, which names ordinary files first.
    """
    samples = _control_samples() if writing else _secret_samples()
    for part in path.split("/"):
        if not _is_telling(part):
            continue
        folded = part.casefold()
        hidden = part.startswith(".")
        for sample in samples:
            reachable = hidden or not sample.startswith(".") or part.startswith(UNKNOWN)
            if reachable and not sample.endswith(_ORDINARY_ENDINGS) and fits(folded, sample):
                return sample
        ending = None if writing else _secret_ending(folded)
        if ending is not None:
            return ending
    return None


def picks_secret(pattern: str) -> str | None:
    """Give a secret's name that a search picks by this pattern, in which `*` also stands for a leading dot, or None."""
    parts = pattern.casefold().split("/")
    for part in parts:
        if is_static(part) and (name := secret_name(part)) is not None:
            return name
    if not _is_telling(parts[-1]):
        return None
    samples = (sample for sample in _secret_samples() if not sample.endswith(_ORDINARY_ENDINGS))
    return next((sample for sample in samples if fits(parts[-1], sample)), None) or _secret_ending(parts[-1])


_WILD_RUN = re.compile(f"[{UNKNOWN}{STAR}]+")


def _secret_ending(pattern: str) -> str | None:
    """Give the secret names that a pattern fits by its end, such as `*.key` for `serv?r.key`, or None."""
    pattern = _WILD_RUN.sub(STAR, pattern)
    longest = max(map(len, _secret_endings()))
    for start in range(max(1, len(pattern) - 2 * longest - 1), len(pattern)):
        end = pattern[start:]
        if (
            end[0] not in (STAR, UNKNOWN)
            and _is_worded(end)
            and (name := next((one for one in _secret_endings() if fits(end, one)), None))
        ):
            return "*" + name
    return None


def _is_telling(part: str) -> bool:
    return not is_static(part) and _is_worded(part)


def _is_worded(part: str) -> bool:
    return any(char not in MARKS for char in part)


def could_be_secret(path: str) -> bool:
    """Whether the last part of a path with wildcards could stand for a secret that does not start with a dot."""
    name = posixpath.basename(path).casefold()
    return any(fits(name, sample) for sample in _secret_samples() if not sample.startswith("."))


@lru_cache(maxsize=1)
def _secret_samples() -> tuple[str, ...]:
    patterns = (name.replace("*", filler) for name in _SECRET_FILES for filler in ("local", "x", "production"))
    return tuple(dict.fromkeys((*patterns, *_SECRET_DIRECTORIES, "environ")))


@lru_cache(maxsize=1)
def _secret_endings() -> tuple[str, ...]:
    names = (name[1:] for name in _SECRET_FILES if name.startswith("*") and "*" not in name[1:])
    return tuple(name for name in names if not name.endswith(_ORDINARY_ENDINGS))


@lru_cache(maxsize=1)
def _control_samples() -> tuple[str, ...]:
    names = (name.replace("*", "yml") for name in _CONTROL_FILES)
    return tuple(dict.fromkeys((*names, *_CONTROL_DIRECTORIES, ".github")))
