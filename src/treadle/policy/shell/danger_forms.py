"""Forms of programs that are dangerous: what publishes, destroys, leaks or takes control when given these arguments.

A line is `programs = form ; form`; a form is the words that must all be among the arguments, in any order. A short
option is also found in a cluster, a long one with its value glued, and a word that ends in `=` by what it begins with.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from treadle.policy.marks import word_set

_PATTERNS_TEXT = """
terraform tofu terragrunt = show
git-push = -f ; --force ; --force-with-lease ; --force-if-includes ; --mirror ; --delete ; -d ; --prune ; --receive-pack
    ; --exec ; --no-verify ; --all
git-fetch git-ls-remote git-clone git-pull = --upload-pack ; --exec ; -u ; -c ; --config ; --template ; --force
git-init = --template
git-reset = --hard ; --merge ; --keep
git-checkout = -f ; --force ; -B ; --ours ; --theirs
git-switch git-branch = -f ; --force ; -C ; --force-create ; --discard-changes ; -D ; -M
git-tag = -d ; --delete ; -f ; --force
git-gc = --prune ; --aggressive
git-rm git-worktree git-submodule = -f ; --force
git-commit git-merge = -n ; --no-verify
git-rebase git-am = -x ; --exec ; --no-verify
git-difftool git-mergetool = -x ; --extcmd ; --tool
git-apply = --unsafe-paths
git-archive = --exec ; --remote
git-maintenance = start ; register
git-stash = drop ; clear
git-reflog git-notes git-lfs git-remote = expire ; delete ; drop ; write ; prune ; migrate ; set-url
git-read-tree git-checkout-index = --reset ; -u ; -f ; -a
git-bundle = unbundle
git-svn = dcommit
git-bisect = run
git-lfs git-subtree = push
git-update-index = --assume-unchanged ; --skip-worktree
git-config = -e ; --edit ; edit ; -f ; --file ; --blob ; --system
git-log git-show git-diff git-diff-tree git-diff-files git-diff-index git-cat-file git-grep = --show-signature ;
    --ext-diff ; --textconv ; --filters ; --open-files-in-pager
git-grep = -O
git-filter-branch git-filter-repo git-replace git-fast-import git-update-ref git-credential git-credential-store
    git-credential-cache git-credential-osxkeychain git-prune git-daemon git-instaweb git-http-backend git-upload-pack
    git-receive-pack git-send-email git-imap-send git-shell = ;
npm pnpm yarn bun = publish ; unpublish ; deprecate ; owner ; token ; login ; adduser ; access ; dist-tag ; config set ;
    config delete ; config edit ; set ; -g install ; --global install ; -g i ; hook ; star ; team ; profile ; global add
    ; -g add ; --global add ; -g uninstall ; -g remove ; -g rm ; -g link ; -g update ; --location=global ;
    --script-shell ; logout ; config get *uth* ; config get *oken* ; config list -l ; config ls -l
cargo = publish ; yank ; owner ; login ; install ; uninstall ; --config
uv = tool install ; tool uninstall ; tool upgrade
pipx = install ; uninstall ; inject ; upgrade
cpan cpanm nix-env nix-collect-garbage nixos-rebuild home-manager guix yay paru xbps-install xbps-remove mas apt-key
    add-apt-repository apt-mark = ;
luarocks opam = install
stack cabal = upload
composer = global ; config ; global-require
mise = trust ; use -g ; settings set
direnv = allow ; permit
pre-commit husky lefthook = install ; uninstall
rustup = self ; toolchain uninstall
twine = upload
poetry uv hatch flit pdm rye = publish ; config pypi-token* ; config http-basic* ; config --list ; source add
gem = push ; yank ; owner ; signin ; install ; uninstall ; sources
mvn gradle sbt lein mix dart flutter elm jsr deno = publish ; deploy ; deploy:deploy ; hex.publish
mvn gradle mvnw gradlew = -s ; --settings ; -I ; --init-script ; release:perform ; exec:exec
dotnet nuget = push ; tool install -g ; tool install --global
lerna changeset nx vsce ovsx = publish
pip pip3 = config debug ; config list ; config get ; --user install ; --root install ; config set ; config edit ; config
    unset ; --break-system-packages install ; --index-url ; --extra-index-url ; install -i ; --trusted-host ;
    --find-links
conda mamba micromamba = config
xattr = -d ; -c
docker podman nerdctl = -H ; --host ; compose down --rmi ; buildx prune ; --volumes-from ; system prune ; system reset
    ; volume rm ; volume prune ; container prune ; image prune ; network prune ; builder prune ; --privileged ; push ;
    login ; swarm ; compose down -v ; --pid=host ; --network=host ; --net=host ; --ipc=host ; --uts=host ;
    --userns=host ; --cap-add ; --device ; --security-opt ; rm -f ; rmi -f ; rm --force ; stack rm ; secret ; context
    ; plugin install ; kill ; trust ; volume remove
docker-compose = down -v ; down --volumes ; rm -f
ansible-playbook ansible ansible-vault ansible-pull ansible-galaxy ansible-console salt salt-call salt-ssh puppet
    chef-client chef-solo chef-run knife surge = ;
fab = deploy ; delete ; sync
expo code-push eas fastlane = publish ; release ; submit ; build
gh = config get *token* ; alias import ; auth ; secret ; repo archive ; repo rename ; repo edit ; gist ; release
    create ; release upload ; alias set ; extension ; ssh-key ; gpg-key ; workflow ; codespace ; variable ; pr merge ;
    ruleset ; run cancel ; config set ; api --method ; api -X ; api -f ; api -F ; api --field ; api --raw-field ; api
    --input ; api graphql ; repo create ; repo sync ; pr close
glab hub = auth ; token ; delete ; release ; api ; variable ; merge
journalctl = --vacuum-time ; --rotate
ip = link set ; add ; del* ; d ; fl* ; set ; down ; via ; netns ; tuntap ; rule ; -b* ; -n
history = -c ; -d ; -w ; -a ; -r ; -n ; -p ; -s
fc = ;
compgen complete = -C ; -F
enable = -f ; -n
bind = -x ; -f
mapfile readarray = -C
set = +o
sftp = -b
logger = -n
nano pico = -s
ssh-keygen = -p ; -R ; -y ; -A ; -D
hg = --config ; update -C ; revert ; strip ; purge ; push -f
svn = revert ; delete ; cleanup --remove*
jj = abandon
bfg lazygit = ;
cmake = -E remove_directory ; -E rm
ld ld.bfd ld.gold ld.lld = --plugin
pandoc = --filter ; -F ; --lua-filter
exiftool = -if ; -config
convert magick mogrify = msl:*
just = --shell
gpg-connect-agent = ;
age rage = -d
gpg gpg2 = --export-s* ; --export-ownertrust ; --delete-* ; --dec* ; --decrypt ; -d ; --import
openssl = rsa ; pkey ; pkcs12 ; enc ; s_client ; s_server ; ec
dropdb dropuser createuser = ;
mysql mariadb = --pager
mongorestore mongoimport = --drop
mysqladmin = drop ; shutdown ; password ; kill ; flush-privileges
pg_restore = --clean ; -c
redis-cli = flushall ; flushdb ; shutdown ; config ; eval ; script ; debug ; module ; slaveof ; replicaof ; del ; unlink
    ; acl ; client ; save ; bgsave ; bgrewriteaof ; migrate ; rename ; --pipe
rails rake = db:schema:load ; db:structure:load ; db:setup
mix = ecto.drop ; ecto.reset ; ecto.rollback
prisma = migrate reset ; db push ; --force-reset ; --accept-data-loss ; migrate deploy
flyway liquibase = clean ; dropall ; dropAll ; undo
tmux screen = -X ; show-environment ; showenv ; capture-pane ; show-buffer ; load-buffer
claude codex gemini aider goose opencode amp crush cursor-agent copilot qwen cline kilo droid = --yolo ; -y ;
    --dangerously-skip-permissions ; --dangerously-bypass-approvals-and-sandbox ; --full-auto ; --yes ; --yes-always ;
    --allow-all-tools ; --auto-approve ; --approval-mode ; --permission-mode ; --allowedTools ; exec ; --force ;
    --allow-all ; --dangerously* ; -p ; --print ; run ; --trust-all-tools ; mcp add ; config
tar bsdtar gtar = *:* ; --to-command ; --checkpoint-action ; -P ; --absolute-names ; --use-compress-program ; -I ;
    --info-script ; --new-volume-script ; --rsh-command ; --rmt-command ; -F ; --remove-files ; --unlink-first ;
    --recursive-unlink
zip 7z 7za 7zz = -@ ; @*
zip = -T ; -TT ; --unzip-command ; -m
rsync = -e ; --rsh ; --rsync-path ; --delete ; --delete-before ; --delete-after ; --delete-excluded ; --del ;
    --remove-source-files ; --password-file ; --files-from ; --config ; --daemon
scp sftp = -S ; -o ; -F ; -D
ssh = -o ; -F ; -R ; -L ; -D ; -w ; -A ; -E ; -S ; -I ; -J
telnet ftp tftp = ;
split = --filter
hostname = -F ; -b
date = -s* ; -us ; --set
sort = --compress-program
rg = --pre ; --hostname-bin
ag ack = --pager
fd fdfind = -x ; -X ; --exec ; --exec-batch
dmesg = -c ; -C
go = install *@* ; run *@* ; -ldflags *-extld* ; -ldflags=*-extld* ; -exec ; -toolexec ; env -w ; -vettool ; -overlay ;
    -modfile
gcc g++ clang cc ld = -wrapper ; -fplugin
man = -P ; --pager ; -H ; --html ; -C
less more = -k ; -o ; -O
vim vi nvim ex view = -c ; -s ; -es
emacs = --eval ; --batch
gdb lldb = -ex ; -x ; -batch ; -o ; -p
strace ltrace = -p
php = -S
screen = -dm
hash = -p
unset = HISTFILE ; HISTSIZE ; HISTCONTROL
nsupdate = ;
make gmake bmake = --eval ; SHELL= ; .SHELLFLAGS= ; MAKEFLAGS= ; MAKESHELL=
"""

DESTRUCTIVE_VERBS = re.compile(
    r"(.*[:_-])?(delete|destroy|terminate|purge|drop|wipe|nuke|revoke|remove|rm|rb|prune|reset|flush|fresh"
    r"|erase|uninstall|truncate|rollback|"
    r"force-\w+|revert|down|downgrade|undo|sqlflush|abandon|strip|undefine|unregister\w*)([:_-].*)?",
    re.IGNORECASE,
)
_SERVICES = word_set("""
    aws gcloud az doctl ibmcloud oci linode-cli hcloud scw eksctl aliyun tccli heroku netlify railway vercel firebase
    wrangler flyctl fly render now cap amplify kubectl oc k3s helm argocd flux istioctl terraform tofu terragrunt pulumi
    cdk serverless sls sst sam eb packer stripe systemctl service rc-service supervisorctl pm2 initctl pg_ctl
    pg_ctlcluster rabbitmqctl rclone gsutil s3cmd mc azcopy
""")
"""Programs that administer services, clouds and clusters: what does not show something may not be undone."""

VERB_PROGRAMS = _SERVICES | word_set("""
    rails rake bin/rails artisan php manage.py prisma sequelize typeorm knex alembic flyway liquibase supabase
    planetscale pscale turso nomad consul vault etcdctl kafka-topics mongosh gh glab dvc wandb kops minikube kind k3d
    vagrant virsh VBoxManage multipass lxc incus btrfs crictl ctr rabbitmqadmin nats dbmate sqlx diesel goose migrate
    hasura flask django-admin ollama knife ipset elasticdump rbd ceph bq
""")

_SHOWS = re.compile(
    r"(get|list|describe|show|head)(-.*)?|ls\w*|view|stat|status|logs?|info|version|help|plan|validate|fmt|diff|top|explain"
    r"|search|cat|is-.*|lint|template|preview|ps|history|events|api-resources|cluster-info|init|check|size|tree|dev|synth"
    r"|providers|completion|local|cat-file|du|file"
)
_TELLS_SECRETS = re.compile(
    r".*(secret|token|credential|password|passwd).*|auth(:.*)?|login|iam|sts|sso|ssm|kms|keyvault|configure|config(:.*)?"
    r"|env(:.*)?|show-environment|--as(=.*)?|keys|variables|values|all|--raw|--flatten|--show-.*|--prod|--production|output|console|presign|export"
)


_INSTALLERS = word_set("""
    npm pnpm yarn bun npx bunx pip pip3 uv uvx pipx poetry pdm gem cargo composer conda mamba micromamba deno nix
    nix-shell nix-build luarocks go
""")
_INSTALLS = word_set(
    "install i add dlx download wheel exec x run require npx bunx uvx pipx nix nix-shell nix-build get tool"
)
_ADDRESS = re.compile(
    r"^(--?[\w-]+=)?((git|hg|svn)\+)?(https?|git|ssh|svn|tarball)(\+\w+)?:(//)?(?!//)(?!localhost\b|127\.|\[::1\])"
    r"|^(github|gitlab|bitbucket|gist):|@\s*git\+|^git@"
)
"""Where a package is fetched from that no index lists; what runs on this machine does not count."""


def _read_patterns() -> dict[str, list[tuple[str, ...]]]:
    patterns: dict[str, list[tuple[str, ...]]] = {}
    for line in filter(None, _PATTERNS_TEXT.replace("\n    ", " ").splitlines()):
        names, _, rest = line.partition(" =")
        forms = [tuple(form.split()) for form in rest.split(";")]
        listed = [form for form in forms if form] or [()]
        for name in names.split():
            patterns.setdefault(name, []).extend(listed)
    return patterns


_PATTERNS = _read_patterns()


def dangerous_form(name: str, arguments: Sequence[str]) -> str | None:
    """Give the form in which a program is dangerous, when these arguments have it."""
    for form in _PATTERNS.get(name, ()):
        if all(_present(word, arguments) for word in form):
            return " ".join((name, *form))
    plain = [word for word in arguments if not word.startswith("-") and "/" not in word]
    if name in VERB_PROGRAMS:
        for word in (*plain, *(word[2:] for word in arguments if word.startswith("--"))):
            if DESTRUCTIVE_VERBS.fullmatch(word):
                return f"{name} {word}"
    if name in _SERVICES:
        telling = next((word for word in (*plain[:4], *arguments) if _TELLS_SECRETS.fullmatch(word)), None)
        shows = any(map(_SHOWS.fullmatch, plain[: 5 if name in ("gcloud", "az") else 2]))
        return f"{name} {telling or plain[0]}" if telling or (plain and not shows) else None
    if name in _INSTALLERS and not _INSTALLS.isdisjoint((name, *plain[:2])):
        return next((f"{name} {word}" for word in arguments if _ADDRESS.search(word)), None)
    return None


def _present(wanted: str, arguments: Sequence[str]) -> bool:
    if "*" in wanted:
        return any(fnmatchcase(word, wanted) for word in arguments)
    if wanted.endswith("="):
        return any(word.startswith(wanted) for word in arguments)
    if not wanted.startswith("-"):
        return wanted in arguments
    if wanted.startswith("--"):
        return any(_is_long(word, wanted, arguments) for word in arguments)
    if len(wanted) > 2:
        return any(word == wanted or word.startswith(wanted + "=") for word in arguments)
    if wanted == "-":
        return "-" in arguments
    return any(word.startswith("-") and not word.startswith("--") and wanted[1] in word[1:] for word in arguments)


def _is_long(word: str, wanted: str, arguments: Sequence[str]) -> bool:
    """Whether a word is a long option, with its value glued or behind it, or cut short as many programs let it be."""
    option, has_value, value = wanted.partition("=")
    given = word.partition("=")[0]
    if has_value:
        return word == wanted or (word == option and value in arguments)
    return given == option or (len(given) > 3 and given.startswith("--") and option.startswith(given))
