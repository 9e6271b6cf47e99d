"""Forms of programs that are dangerous: what publishes, destroys, leaks or takes control when given these arguments.

A line is `programs = form form`; a form is words, joined by `&`, that must all be among the arguments, in any order.
`*` stands for any letters. A short option is also found in a cluster, a long one cut short or with its value glued.
What is said of `git-` goes for all subcommands of git. With `~` any form of a program runs something, or changes the
machine: a confinement holds that.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from treadle.policy.marks import table_rows, word_set

_FORMS_TEXT = """
git- = --exec --upload-pack --receive-pack --no-verify --extcmd --ext-diff --textconv --show-signature
    --open-files-in-pager --unsafe-paths
git-push git-tag git-gc = -f --force* -d --delete --mirror --prune --all --aggressive
git-clone git-init git-fetch git-pull git-ls-remote = -f -u -c --config --template --force*
git-reset git-read-tree git-checkout-index = --hard --merge --keep --reset -u -f -a
git-checkout git-switch git-branch git-rm git-worktree git-submodule = -f --force* -B -C -D -M --discard-changes
git-commit git-merge = -n
git-bisect git-rebase git-am = -x run
git-cherry-pick git-revert = --all --bisect* --branches* --glob* --tags* --remotes* --reflog --stdin -g
    --alternate-refs --indexed-objects
git-stash git-reflog git-notes git-lfs git-remote git-bundle = drop clear expire delete write prune migrate set-url
    unbundle
git-config = -e --edit edit -f --file --blob --system
git-cat-file git-log git-show git-diff git-grep git-diff-tree git-diff-files git-diff-index = --filters
git-grep = -O
git-archive git-update-index = --remote --assume-unchanged --skip-worktree
git-filter-repo git-maintenance git-prune git-replace git-update-ref =
npm pnpm yarn bun cargo gem twine poetry uv hatch flit pdm rye mvn gradle sbt lein mix dart flutter elm jsr deno lerna
    changeset nx vsce ovsx expo eas code-push fastlane = *publish
cargo gem = owner login yank
npm pnpm yarn bun = deprecate owner token login logout adduser access dist-tag set hook star team profile --script-shell
    --location config&delete config&edit config&*uth* config&*oken* config&-l global&add -g&add -g&i* -g&r*m* -g&u*
    -g&link --global&add --global&i*
git-lfs git-subtree gem dotnet nuget docker podman nerdctl docker-compose prisma = push
stack cabal twine = upload
cargo gem pipx pre-commit husky lefthook luarocks opam = install uninstall
gem pipx = inject upgrade signin sources
uv dotnet nuget rustup = tool&*install tool&upgrade self toolchain&uninstall
poetry uv hatch flit pdm rye = config&pypi-token* config&http-basic* config&--list source&add
composer conda mamba micromamba = config global global-require
mise direnv = trust allow permit use&-g settings&set
mvn gradle sbt lein mix dart flutter elm jsr deno prisma = *deploy
expo eas code-push fastlane fab = release submit build deploy delete sync
mvn gradle mvnw gradlew = -s* -I* -[!-DP]*[sI]* --settings --init-script release:perform exec:exec
pip pip3 = config --user --root -i --break-system-packages --index-url --extra-index-url --trusted-host --find-links
docker podman nerdctl buildah docker-compose = --push -H --host --*=host --net*&host --[piu]*&host --privileged
    --cap-add --device --security-opt --volumes-from compose&--rmi down&-v rm&-f rm&--force rmi&-f prune system&reset
    volume&r*m* stack&rm login swarm secret context plugin&install kill trust
gh glab hub = auth secret gist ssh-key gpg-key workflow codespace variable ruleset extension pr&merge api&graphql
    config&set config&*token* alias&import alias&set repo&archive repo&rename repo&edit repo&create repo&sync pr&close
    release&create release&upload run&cancel -X --method --raw-field api&-f api&-F api&--field api&--input
glab hub = api delete release token merge
terraform tofu terragrunt = show -migrate-state -reconfigure
~journalctl ~dmesg = --vacuum-time --rotate -c -C
~ip = add del* d down fl* set via netns tuntap rule -b* -n
~history = -?*
~compgen ~complete ~enable ~bind ~mapfile ~readarray ~hash = -C -F -f -n -x -p
~set = +o
~unset = HIST*
ssh scp sftp = -o -F -R -L -D -w -A -E -S -I -J -b
~sort ~split ~ag ~ack ~pandoc mysql mariadb ~man ~just cargo hg = --compress-program --filter --lua-filter --pager
    --shell --config
~rg = --pre --hostname-bin
~ld ~ld.bfd ~ld.gold ~ld.lld ~gcc ~g++ ~clang ~cc = -wrapper -fplugin --plugin
man = -P -H -C --html
~hostname pandoc = -F -b
~fd ~fdfind = -x -X --exec-batch
~nano ~pico ~vim ~vi ~nvim ~gvim ~ex ~view ~emacs = -c -s --eval --batch --remote*
~php = -S
~date = -s* -us --set
~logger = -n
xattr = -d -c
~less ~more = -k -o -O
~gdb ~lldb = -x -o -p -batch
~strace ~ltrace = -p
ssh-keygen = -p -R -y -A -D
hg svn jj = revert strip purge delete abandon update&-C push&-f cleanup&--remove*
cmake = -E&rm -E&remove_directory
~exiftool = -if -config
~convert ~magick ~mogrify = msl:*
gpg gpg2 age rage = -d --export-* --delete-* --dec* --import
~openssl = rsa pkey pkcs12 enc s_client s_server ec
mongorestore mongoimport mysqladmin redis-cli = --drop drop shutdown password kill flush-privileges script debug module
    slaveof replicaof del unlink acl client save bg* migrate rename --pipe
pg_restore = --clean -c
rails rake mix = db:*load db:setup ecto.drop ecto.r*
prisma = --accept-data-loss --force-reset
flyway liquibase = clean drop*
~tmux ~screen = -X -dm show* capture-pane load-buffer send* paste* respawn* pipe* run run-shell if if-shell source*
    set-hook kill-server
~kitty ~kitten ~wezterm ~alacritty = @&send* @&launch @&run cli&send* cli&spawn cli&split* msg
~zellij = action run
~emacsclient = -e --eval
claude codex gemini aider goose opencode amp crush cursor-agent copilot qwen cline kilo droid = --yolo --yes* --allow*
    --dangerously* --full-auto --auto-approve --approval-mode --permission-mode --trust-all-tools --force --print -p -y
    exec run config mcp&add
tar bsdtar gtar = *:* --to-command --checkpoint-action -P --absolute-names --use-compress-program -I --info-script
    --new-volume-script --rsh-command --rmt-command -F --remove-files --unlink-first --recursive-unlink
zip 7z 7za 7zz = -@ @*
zip = -T --unzip-command -m
rsync = -e --rsh --rsync-path --delete* --remove-source-files --password-file --files-from --config --daemon
~go = install&*@* run&*@* *-extld* -exec -toolexec env&-w -vettool -overlay -modfile
~make ~gmake ~bmake = --eval *SHELL*=* MAKEFLAGS=*
"""

DESTRUCTIVE_VERBS = re.compile(
    r"(.*[:_-])?(delete|destroy|terminate|purge|drop|wipe|nuke|revoke|remove|rm|rb|prune|reset|(sql)?flush|fresh|erase"
    r"|uninstall|truncate|rollback|force-\w+|revert|down(grade)?|undo|abandon|strip|undefine|unregister\w*)([:_-].*)?",
    re.IGNORECASE,
)
_SERVICES = word_set("""
    aws gcloud az doctl ibmcloud oci linode-cli hcloud scw eksctl aliyun tccli heroku netlify railway vercel firebase
    wrangler flyctl fly render now cap amplify kubectl oc k3s helm argocd flux istioctl terraform tofu terragrunt pulumi
    cdk serverless sls sst sam eb packer stripe systemctl service rc-service supervisorctl pm2 pg_ctl pg_ctlcluster
    rabbitmqctl rclone gsutil s3cmd mc azcopy
""")
"""Programs that administer services, clouds and clusters: what does not show something may not be undone."""

_VERB_PROGRAMS = _SERVICES | word_set("""
    rails rake artisan php manage.py prisma sequelize typeorm knex alembic flyway liquibase supabase planetscale pscale
    turso nomad consul etcdctl kafka-topics mongosh gh glab dvc wandb kops minikube kind k3d vagrant virsh VBoxManage
    multipass lxc incus crictl ctr rabbitmqadmin nats dbmate sqlx diesel goose migrate hasura flask django-admin ollama
    elasticdump rbd ceph bq
""")

_SHOWS = re.compile(
    r"(get|list|describe|show|head)(-.*)?|ls\w*|view|stat|status|logs?|info|version|help|plan|validate|fmt|diff|top|cat"
    r"|ps|explain|search|is-.*|lint|template|preview|history|events|api-resources|cluster-info|init|check|size|tree"
    r"|dev|synth|providers|completion|cat-file|local|du|file"
)
_TELLS_SECRETS = re.compile(
    r".*(secret|token|credential|passw(or)?d).*|auth(:.*)?|login|iam|sts|sso|ssm|kms|keyvault|configure|config(:.*)?"
    r"|env(:.*)?|show-environment|--as(=.*)?|keys|variables|values|all|--raw|--flatten|--show-.*|--prod(uction)?|output"
    r"|console|presign|export"
)
_INSTALLERS = word_set("""
    npm pnpm yarn bun npx bunx pip pip3 uv uvx pipx poetry pdm gem cargo composer conda mamba micromamba deno nix
    nix-shell nix-build luarocks go
""")
_ADDRESS = re.compile(
    r"^(--?[\w-]+=)?((git|hg|svn)\+)?(https?|git|ssh|svn|tarball)(\+\w+)?:(//)?(?!//)(?!localhost\b|127\.|\[::1\])"
    r"|^(github|gitlab|bitbucket|gist):|@\s*git\+|^git@"
)
"""Where a package is fetched from that no index lists; what runs on this machine does not count."""


_NAME_THINGS = word_set("""
    npm pnpm yarn bun cargo gem uv poetry pdm deno pip pip3 docker podman nerdctl docker-compose gh dotnet
""")
_TAKE_NAMES = word_set("""
    test t run run-script start exec x dlx add install i view info show ls list why outdated logs build ps images pr
    issue search
""")
"""Programs, and their subcommands behind which words name tests, scripts, packages or containers, and do nothing."""

_FORMS: dict[str, list[tuple[str, ...]]] = {}
for _names, _forms in table_rows(_FORMS_TEXT):
    for _name in _names.split():
        _FORMS.setdefault(_name.lstrip("~"), []).extend([tuple(form.split("&")) for form in _forms.split()] or [()])
HELD_FORMS = frozenset(re.findall(r"(?<=~)\S+", _FORMS_TEXT))

_ONLY_DEBUGS = re.compile(
    r"(gdb|lldb)( -(batch|q|-)| -(ex|o) (r(un)?|bt( full)?|c(ontinue)?|q(uit)?|where|info \w+))+( --args)? [^- ].*"
)
"""A debugger that runs one program and says where it stands; what the program is, is judged by itself."""


def dangerous_form(name: str, arguments: Sequence[str]) -> str | None:
    """Give those of the arguments that make a program dangerous; empty where any do, None where none does."""
    of_all = _FORMS["git-"] if name.startswith("git-") else []
    subcommands = arguments[: _first_name(arguments)] if name in _NAME_THINGS else arguments
    if name in ("gdb", "lldb") and _ONLY_DEBUGS.fullmatch(" ".join((name, *arguments))):
        return None
    for form in [*_FORMS.get(name, []), *of_all]:
        is_subcommand = len(form) == 1 and not form[0].startswith("-")
        words = subcommands if is_subcommand else arguments
        found = [[word for word in words if _fits(word, wanted)][:1] for wanted in form]
        if all(found):
            return " ".join(word for one in found for word in one)
    plain = [word for word in arguments if not word.startswith("-") and "/" not in word]
    if name in _VERB_PROGRAMS:
        for word in (*plain, *(word[2:] for word in arguments if word.startswith("--"))):
            if DESTRUCTIVE_VERBS.fullmatch(word):
                return word
    if name in _SERVICES:
        telling = next((word for word in (*plain[:4], *arguments) if _TELLS_SECRETS.fullmatch(word)), None)
        shows = any(map(_SHOWS.fullmatch, plain[: 5 if name in ("gcloud", "az") else 2]))
        return telling or plain[0] if telling or (plain and not shows) else None
    if name in _INSTALLERS:
        return next((word for word in arguments if _ADDRESS.search(word)), None)
    return None


def _first_name(arguments: Sequence[str]) -> int:
    """Give the place behind a subcommand that takes names; what stands behind an option may be its value instead."""
    pairs = zip(("", *arguments), arguments, strict=False)
    found = (place for place, (before, word) in enumerate(pairs, 1) if word in _TAKE_NAMES and before[:1] != "-")
    return next(found, len(arguments))


def _fits(word: str, wanted: str) -> bool:
    """Whether a word of the arguments is what a form wants."""
    if not wanted.startswith("-"):
        return fnmatchcase(word, wanted)
    if len(wanted) == 2:
        return word.startswith("-") and not word.startswith("--") and wanted[1] in word
    option, given = wanted.rstrip("*"), word.partition("=")[0]
    cut_short = len(given) > 3 and given[1] == "-" and option.startswith(given)
    return given == option or cut_short or fnmatchcase(word, wanted)
