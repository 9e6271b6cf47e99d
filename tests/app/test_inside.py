"""Inside the sandbox a project looks as it does outside: git, secrets, virtual environments, the home directory."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.needed import needs
from treadle.app.security.command_confinement import confine_as
from treadle.app.security.command_folders import CommandFolders
from treadle.protocol.tools import Confinement
from treadle.workspace.sandbox import Backend, SandboxState
from treadle.workspace.sandbox.confine import version
from treadle.workspace.workspace import open_workspace

pytestmark = needs("bwrap")


class Inside:
    """A repository below a home directory, and commands in it."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.root = self.home / "project"
        self.root.mkdir(parents=True)
        self.place = CommandFolders(root=str(self.root), data=folder / "data", private=folder / "data/session")

    async def run(
        self,
        line: str,
        kind: Confinement = Confinement.WORK,
        *,
        commands: Sequence[Sequence[str]] = (),
        status: int = 0,
    ) -> tuple[str, tuple[str, ...]]:
        """Run a line to its end; gives its output and what is said of it."""
        workspace = open_workspace(self.root, spool=self.place.data / "spool")
        confinement = await asyncio.to_thread(confine_as, kind, line, self.place, commands=commands)
        command = workspace.launcher.start(line, setup=confinement)
        await command.finish(60)
        output = command.take_output()
        said = await command.settle(output)
        await command.close()
        await workspace.close()
        assert command.status == status, output
        return output, tuple(one.text for one in said)

    def git(self, *words: str) -> str:
        done = subprocess.run(("git", *words), cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inside:
    made = Inside(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    (made.home / ".gitconfig").write_text(
        '[user]\n\tname = "A \\"B\\" C"\n\temail = a@b\n[credential]\n\thelper = store\n'
        '[url "https://key@host/"]\n\tinsteadOf = https://host/\n[http]\n\textraHeader = key\n[github]\n\ttoken = key\n'
    )
    made.git("init", "-q", "-b", "main")
    for name, text in {
        "a.txt": "one\n",
        ".env": "IN_HEAD=1\n",
        ".npmrc": "registry=x\n",
        "AGENTS.md": "rules\n",
        ".github/workflows/x.yml": "on: push\n",
        ".gitignore": "ignored\n",
        "keys/server.pem": "public test key\n",
    }.items():
        (made.root / name).parent.mkdir(parents=True, exist_ok=True)
        (made.root / name).write_text(text)
    made.git("add", "-A")
    made.git("commit", "-qm", "first")
    return made


@pytest.mark.parametrize("kind", [Confinement.LOOK, Confinement.WORK])
async def test_what_reads_a_linked_worktree_reads_its_repository_and_cannot_change_it(
    inside: Inside, kind: Confinement
) -> None:
    linked = inside.home / "linked"
    inside.git("worktree", "add", "-q", str(linked), "-b", "second")
    inside.root, inside.place = linked, replace(inside.place, root=str(linked))
    output, said = await inside.run("git status --porcelain -b; git log --format=%s; echo two >> a.txt || true", kind)
    assert (output.splitlines()[:2], said) == (["## second", "first"], ())
    output, _ = await inside.run("git branch third", kind, status=128)
    assert "Read-only file system" in output
    assert not (inside.home / "project" / ".git" / "refs" / "heads" / "third").exists()


@pytest.mark.parametrize("kind", [Confinement.LOOK, Confinement.WORK, Confinement.GIT])
@pytest.mark.parametrize("shape", ["folder above", "link", "file"])
async def test_a_repository_that_lies_outside_is_named_with_the_way_on(
    inside: Inside, shape: str, kind: Confinement
) -> None:
    project, work = inside.root, inside.root / "keys"
    if shape != "folder above":
        work = inside.home / "other"
        work.mkdir()
        away = inside.home / "away.git"
        (project / ".git").rename(away)
        (work / ".git").symlink_to(away) if shape == "link" else (work / ".git").write_text(f"gitdir: {away}\n")
    inside.root, inside.place = work, replace(inside.place, root=str(work))
    output, said = await inside.run("git status", kind, status=128)
    assert "not a git repository" in output
    where = f"in {project}" if shape == "folder above" else f"{inside.home}/away.git, to which {work}/.git leads"
    assert len(said) == 1
    assert said[0].startswith(f"The repository of this folder is {where}: outside of the workspace")
    assert said[0].endswith('with needs: ["host"] for a run of git without the sandbox.')
    output, said = await inside.run("echo 'fatal: not a git repository' > x; cat a.txt || true", Confinement.WORK)
    assert said == ()


@pytest.mark.parametrize("kind", [Confinement.LOOK, Confinement.WORK, Confinement.GIT])
async def test_a_clean_clone_is_clean_and_shows_no_file_that_is_not_there(inside: Inside, kind: Confinement) -> None:
    before = sorted(path.name for path in inside.root.iterdir())
    line = "git status --porcelain; git diff; git diff HEAD --stat; ls -A; cat .env; git stash list; git blame -s a.txt"
    output, said = await inside.run(line, kind)
    blame = inside.git("blame", "-s", "a.txt")
    assert output == "".join(f"{name}\n" for name in before) + "IN_HEAD=1\n" + blame
    assert said == ()


async def test_a_secret_shows_what_was_committed_or_nothing(inside: Inside) -> None:
    (inside.root / ".env").write_text("LOCAL_SECRET=1\n")
    (inside.root / "prod.env").write_text("SECRET=2\n")
    (inside.root / "more.env").write_text("SECRET=3\n")
    output, said = await inside.run("cat .env prod.env; git status --porcelain; git diff; wc -c < prod.env")
    assert output == "IN_HEAD=1\n?? more.env\n?? prod.env\n0\n"
    assert said == (
        "more.env reads as empty for commands, because it may hold secrets.",
        "prod.env reads as empty for commands, because it may hold secrets.",
    )
    assert await inside.run("cat prod.env; true") == ("", ())
    (inside.root / ".env").write_text("LOCAL_SECRET=1\n")
    inside.git("commit", "-qam", "second")
    assert (await inside.run("cat .env"))[0] == "LOCAL_SECRET=1\n"


async def test_the_repository_is_worked_on_where_the_confinement_says_so(inside: Inside) -> None:
    line = (
        "git switch -qc topic && echo two >> a.txt && git commit -qam two && git switch -q main && echo x > b.txt"
        " && git add b.txt && git commit -qm three && git switch -q topic && git rebase -q main && git stash list"
        " && echo three >> a.txt && git stash -q && git stash pop -q && git commit -qam four && git tag t"
        " && git log --format=%an%s && git gc -q && git fsck --no-dangling && git status --porcelain"
    )
    output, said = await inside.run(line, Confinement.GIT)
    assert output == 'A "B" Cfour\nA "B" Ctwo\nA "B" Cthree\nA "B" Cfirst\n'
    assert said == ()
    assert inside.git("status", "--porcelain", "--branch") == "## topic\n"
    for refused in ("git config core.pager evil", "echo x > .git/hooks/pre-commit", "mv .git g", "rm -rf .git/config"):
        await inside.run(f"{refused} && exit 0; exit 9", Confinement.GIT, status=9)
    await inside.run("git commit -q --allow-empty -m no", Confinement.WORK, status=128)


async def test_a_linked_worktree_is_worked_on_too_but_no_folder_that_a_file_names(
    inside: Inside, tmp_path: Path
) -> None:
    linked = inside.home / "linked"
    inside.git("worktree", "add", "-q", str(linked), "-b", "second")
    inside.root = linked
    inside.place = CommandFolders(root=str(linked), data=tmp_path / "data", private=tmp_path / "data/session")
    output, _ = await inside.run(
        "echo x > new && git add new && git commit -qm linked && git log -1 --format=%s", Confinement.GIT
    )
    assert output == "linked\n"
    await inside.run("echo x >> $(git rev-parse --git-common-dir)/config", Confinement.GIT, status=1)
    (inside.home / "mine").mkdir()
    (linked / ".git").write_text(f"gitdir: {inside.home}/mine\n")
    await inside.run(f"echo x > {inside.home}/mine/x", Confinement.GIT, status=1)
    assert list((inside.home / "mine").iterdir()) == []


async def test_control_files_that_were_made_are_moved_away_and_the_rest_stays(inside: Inside) -> None:
    line = "mkdir -p new/deep && echo x > new/deep/CLAUDE.md && echo y > new/file && git init -q sub && touch sub/f"
    _, said = await inside.run(line)
    assert [sentence.split(" was made ")[0] for sentence in said] == ["sub/.git", "new/deep/CLAUDE.md"]
    assert inside.git("status", "--porcelain", "-uall") == "?? new/file\n?? sub/f\n"


async def test_a_repository_that_is_new_stays_and_is_protected_from_then_on(inside: Inside) -> None:
    shutil.rmtree(inside.root / ".git")
    for kind in (Confinement.WORK, Confinement.GIT):
        _, said = await inside.run("git init -q && git config user.name x", kind)
        assert said == ()
        await inside.run("echo evil > .git/hooks/pre-commit", kind, status=1)
        shutil.rmtree(inside.root / ".git")
    _, (moved,) = await inside.run("git init -q && git config core.fsmonitor ./x", Confinement.GIT)
    assert moved.startswith(".git was made while the command ran.")


async def test_the_program_that_installs_may_change_an_environment_and_others_not(inside: Inside) -> None:
    for name in (".venv/pyvenv.cfg", ".venv/bin/python", "node_modules/.bin/tsc"):
        (inside.root / name).parent.mkdir(parents=True, exist_ok=True)
        (inside.root / name).write_text("")
    for name in (".venv/bin/ls", ".venv/lib/x.pth", "node_modules/.bin/tsc"):
        await inside.run(f"mkdir -p $(dirname {name}); echo evil > {name}", status=1)
    await inside.run("touch node_modules/fine")
    await inside.run("echo x > .venv/bin/made", commands=[("pip", "install", "x")])
    await inside.run("echo x > node_modules/.bin/made", commands=[("pip", "install", "x")], status=1)
    await inside.run("echo x > node_modules/.bin/made", commands=[("npm", "ci")])


CREDENTIALS = """
    .ssh/id_rsa .ssh/config .ssh/known_hosts .aws/credentials .aws/config .azure/accessTokens.json .kube/config
    .docker/config.json .gnupg/secring.gpg .gnupg/private-keys-v1.d/key .netrc .npmrc .yarnrc.yml .pypirc .pgpass
    .my.cnf .git-credentials .config/git/credentials .config/gh/hosts.yml .config/hub .config/glab-cli/config.yml
    .config/gcloud/credentials.db .config/gcloud/application_default_credentials.json .config/op/config
    .config/rclone/rclone.conf .config/doctl/config.yaml .config/hcloud/cli.toml .config/containers/auth.json
    .config/Code/User/globalStorage/state.vscdb .config/Cursor/state.vscdb .config/google-chrome/Default/Cookies
    .config/chromium/Default/Cookies .config/BraveSoftware/Brave/Cookies .mozilla/firefox/x/logins.json
    .config/Slack/Cookies .config/discord/token .config/Signal/config.json .config/stripe/config.toml
    .config/fly/config.yml .fly/config.yml .config/heroku/config.json .config/netlify/config.json .netlify/config.json
    .config/vercel/auth.json .local/share/com.vercel.cli/auth.json .config/configstore/firebase-tools.json
    .config/gcloud/access_tokens.db .config/sops/age/keys.txt .age/key.txt .age-key .anthropic/key .claude.json
    .claude/.credentials.json .codex/auth.json .gemini/oauth_creds.json .config/openai/key .openai .cody/token
    .local/share/opencode/auth.json .config/github-copilot/hosts.json .config/anthropic/token .huggingface/token
    .cache/huggingface/token .kaggle/kaggle.json .vnc/passwd .config/remmina/x.remmina .rdp .config/freerdp/x
    .local/share/keyrings/login.keyring .local/share/kwalletd/kdewallet.kwl .password-store/a.gpg .config/KeePass/x
    passwords.kdbx Documents/passwords.kdbx Desktop/secret.txt Downloads/key.pem .config/Bitwarden/data.json
    .config/1Password/x .lastpass/x .boto .s3cfg .config/s3cmd .terraformrc .terraform.d/credentials.tfrc.json
    .vault-token .nomad-token .consul-token .cargo/credentials.toml .cargo/credentials .gem/credentials .bundle/config
    .m2/settings.xml .m2/settings-security.xml .gradle/gradle.properties .ivy2/.credentials .sbt/credentials
    .composer/auth.json .config/composer/auth.json .nuget/NuGet.Config .config/NuGet/NuGet.Config .hex/hex.config
    .pip/pip.conf .config/pip/pip.conf .config/pypoetry/auth.toml .config/uv/uv.toml .condarc .databrickscfg
    .snowsql/config .dbt/profiles.yml .jupyter/jupyter_server_config.json .ipython/history.sqlite .bash_history
    .zsh_history .python_history .psql_history .mysql_history .node_repl_history .viminfo .lesshst .wget-hsts
    .local/share/fish/fish_history .config/fish/fish_variables .bashrc .profile .zshenv .muttrc .mbsyncrc .msmtprc
    .thunderbird/x/logins.json .purple/accounts.xml .irssi/config .weechat/sec.conf .config/weechat/sec.conf
    .config/tailscale/x .cloudflared/cert.pem .wrangler/config/default.toml .config/.wrangler/config.toml
    .ngrok2/ngrok.yml .config/ngrok/ngrok.yml .config/syncthing/key.pem
    .config/filezilla/sitemanager.xml .config/transmission/x
    .electrum/wallets/w .bitcoin/wallet.dat .ethereum/keystore/k .config/solana/id.json .near-credentials/x
    .oci/config .aliyun/config.json .bluemix/config.json .scw/config.yaml .config/linode-cli .akamai/edgerc .edgerc
    .config/pulumi/credentials.json .pulumi/credentials.json .config/argocd/config .argocd/config .config/helm/x
    .minikube/ca.key .config/treadle/credentials.json .config/sentry .sentryclirc .ICEauthority .Xauthority .screenrc
    .subversion/auth/x .hgrc .cvspass .config/jgit/x .config/rustup/token .erlang.cookie other-project/.env notes.txt
"""


async def test_no_credential_of_the_home_directory_can_be_read_or_listed(inside: Inside) -> None:
    names = CREDENTIALS.split()
    assert len(names) >= 150
    for name in names:
        if not (inside.home / name).exists():
            (inside.home / name).parent.mkdir(parents=True, exist_ok=True)
            (inside.home / name).write_text("SECRET-OF-HOME")
    output, _ = await inside.run(
        "cd; grep -rl SECRET-OF-HOME . /tmp; find . -type f | grep -v ./project/; cat ~/.gitconfig"
    )
    assert "key" not in output
    assert output.startswith("./.gitconfig\n[user]\n")
    await inside.run("echo x > ~/made", status=1)
    await inside.run("echo x > ~/.cache/made && mkdir -p ~/.npm/x && cat ~/.cache/made")
    assert (await inside.run("cat ~/.cache/made"))[0] == "x\n"
    assert not (inside.home / ".cache/made").exists()


@pytest.mark.parametrize("where", ["home", "temporary", "workspace"])
async def test_a_virtual_environment_works_wherever_it_is(
    inside: Inside, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = {"home": inside.home / "envs/one", "temporary": tmp_path / "env", "workspace": inside.root / ".venv"}[where]
    subprocess.run((sys.executable, "-m", "venv", "--without-pip", str(at)), check=True)
    package = next((at / "lib").iterdir()) / "site-packages/found.py"
    package.write_text("print('found')")
    monkeypatch.setenv("VIRTUAL_ENV", str(at))
    monkeypatch.setenv("PATH", f"{at}/bin{os.pathsep}{os.environ['PATH']}")
    output, _ = await inside.run("python -c 'import found, sys; print(sys.prefix)'; command -v python")
    assert output == f"found\n{at}\n{at}/bin/python\n"


async def test_under_landlock_a_project_is_worked_on_and_the_home_directory_is_closed(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    if version() < 3:
        pytest.skip("the kernel has no Landlock that is new enough")
    state = SandboxState(backend=Backend.LANDLOCK)
    monkeypatch.setattr("treadle.app.security.command_confinement.probe", lambda: state)
    (inside.home / "notes.txt").write_text("SECRET-OF-HOME")
    (inside.root / "src").mkdir()
    line = "echo x > src/made && git log --format=%an%s && git config user.email && cat src/made && git var GIT_EDITOR"
    assert (await inside.run(line))[0] == 'A "B" Cfirst\na@b\nx\ntrue\n'
    for refused in ("cat ~/notes.txt", "cat .env", "cat ~/.gitconfig", "echo x > ~/made", "echo x > AGENTS.md"):
        await inside.run(f"{refused} && exit 0; exit 9", status=9)
    assert (inside.root / "AGENTS.md").read_text() == "rules\n"


async def test_temporary_files_are_private_and_last(inside: Inside) -> None:
    await inside.run('test "$TMPDIR" = /tmp && mktemp > /dev/null && echo kept > /tmp/kept')
    assert (await inside.run("cat $TMPDIR/kept"))[0] == "kept\n"
    assert not Path("/tmp/kept").exists()


async def test_a_server_on_loopback_is_reached_by_the_command_that_started_it(inside: Inside) -> None:
    program = (
        'import http.server, threading, urllib.request as r; s = http.server.HTTPServer(("127.0.0.1", 0), '
        "http.server.SimpleHTTPRequestHandler); threading.Thread(target=s.serve_forever, daemon=True).start(); "
        'print(r.urlopen(f"http://127.0.0.1:{s.server_port}/a.txt").read().decode())'
    )
    output, _ = await inside.run(f"python3 -c '{program}' 2>/dev/null")
    assert output == "one\n\n"


async def test_what_runs_on_is_looked_after_while_it_runs(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treadle.workspace.commands.process._SETTLE_EVERY", 0.2)
    workspace = open_workspace(inside.root, spool=inside.place.data / "spool")
    line = "sleep 0.1; echo x > CLAUDE.md; sleep 60"
    command = workspace.launcher.start(line, setup=confine_as(Confinement.WORK, line, inside.place))
    quarantine = inside.place.data / "quarantine"
    for _ in range(500):
        if list(quarantine.rglob("CLAUDE.md")):
            break
        await asyncio.sleep(0.02)
    assert not (inside.root / "CLAUDE.md").exists()
    await command.stop("enough")
    (said,) = await command.settle("")
    assert said.undone
    assert said.text.startswith("CLAUDE.md was made while the command ran.")
    await command.close()
    await workspace.close()
