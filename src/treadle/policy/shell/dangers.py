"""What is dangerous by name: programs, subcommands, variables, and words in the code of other languages."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from treadle.policy.marks import split_words

ALWAYS: dict[str, str] = {
    name: why
    for why, names in {
        "gains other rights": "sudo su doas pkexec runuser sudoedit sg newgrp chroot unshare nsenter setpriv run0",
        "changes disks or file systems": (
            "mkfs mkfs.* mke2fs mkswap fdisk sfdisk cfdisk gdisk sgdisk parted wipefs blkdiscard hdparm badblocks "
            "shred srm wipe mount umount losetup swapon swapoff cryptsetup lvremove vgremove pvremove lvcreate "
            "mdadm zpool zfs dmsetup debugfs tune2fs resize2fs fsck fsck.* e2fsck diskutil mkdosfs newfs"
        ),
        "stops or reconfigures the machine": (
            "shutdown reboot halt poweroff init telinit kexec insmod rmmod modprobe sysctl grub-install nvram csrutil "
            "spctl setenforce apparmor_parser bcdedit timedatectl hwclock hostnamectl localectl loginctl"
        ),
        "makes something run later": (
            "at batch atrm crontab launchctl systemd-run chkconfig update-rc.d rc-update anacron schtasks dbus-send"
        ),
        "changes accounts": (
            "useradd userdel usermod groupadd groupdel groupmod adduser deluser addgroup delgroup passwd chpasswd "
            "visudo vipw vigr chsh chfn gpasswd pwck dscl"
        ),
        "changes the network or its protection": (
            "iptables ip6tables iptables-restore ebtables arptables nft ufw firewall-cmd pfctl ipfw ifconfig route "
            "nmcli wg wg-quick tcpdump tshark dumpcap ettercap arpspoof nmap masscan networksetup"
        ),
        "changes rights of files beyond their mode": "setcap setfacl chattr chflags chcon restorecon",
        "ends processes by pattern": "killall killall5 pkill skill xkill fuser",
        "opens a raw connection": "nc ncat netcat nc.openbsd nc.traditional socat cryptcat websocat chisel ngrok "
        "cloudflared localtunnel lt tailscale autossh sshuttle",
        "reads or changes stored credentials": (
            "security secret-tool pass gopass op bw lpass vault keyring ssh-add ssh-copy-id ssh-agent aws-vault "
            "doppler chamber sops age-keygen kinit klist mimikatz"
        ),
        "changes packages of the system": (
            "apt apt-get aptitude dpkg rpm yum dnf zypper pacman apk emerge snap flatpak brew port choco winget scoop"
        ),
        "controls the desktop": "osascript xdotool wmctrl ydotool defaults dconf gsettings pbcopy pbpaste xclip",
        "controls another program or agent": "treadle gdbserver reptyr dtach expect",
    }.items()
    for name in names.split()
}
"""Program patterns and why they are dangerous whatever their arguments."""

_READ_FORMS = {
    "apt": {"list", "show", "search", "policy"},
    "brew": {"list", "info", "search", "--prefix", "--version", "doctor", "deps", "outdated"},
    "dpkg": {"-l", "-L", "-s", "-S", "--list", "--status"},
    "rpm": {"-q", "-qa", "-qi", "-ql"},
    "dnf": {"list", "info", "search"},
    "pacman": {"-Q", "-Qi", "-Ql", "-Ss", "-Si"},
    "apk": {"info", "search", "list"},
    "snap": {"list", "info"},
    "flatpak": {"list", "info"},
    "ifconfig": {""},
    "mount": {""},
    "route": {"", "-n"},
    "timedatectl": {"", "status"},
    "hostnamectl": {"", "status"},
    "crontab": {"-l"},
    "treadle": {"--version", "--help", "help", "doctor"},
    "ssh-agent": set(),
}
"""First arguments with which an otherwise dangerous program only tells something; it is asked all the same."""

_PATTERNS_TEXT = """
npm pnpm yarn bun = publish ; unpublish ; deprecate ; owner ; token ; login ; adduser ; access ; dist-tag ; config set ;
    config delete ; config edit ; set ; -g install ; --global install ; -g i ; hook ; star ; team ; profile ;
    global add ; -g add ; --global add
cargo = publish ; yank ; owner ; login
twine = upload
poetry uv hatch flit pdm rye = publish ; config pypi-token
gem = push ; yank ; owner ; signin
mvn gradle sbt lein mix dart flutter elm jsr deno = publish ; deploy ; deploy:deploy ; hex.publish ; pub publish
dotnet nuget = push
lerna changeset nx vsce ovsx = publish
goreleaser semantic-release release-it np = release ;
pip pip3 = config set ; config edit ; config unset ; --break-system-packages install ;
    --index-url ; --extra-index-url ; install -i ; --trusted-host ; --find-links
conda mamba micromamba = config
xattr = -d ; -c ; -w
docker podman nerdctl = system prune ; system reset ; volume rm ; volume prune ; container prune ;
    image prune ; network prune ;
    builder prune ; --privileged ; push ; login ; swarm ; exec --privileged ; compose down -v ; compose down --volumes ;
    --pid=host ; --network=host ; --net=host ; --ipc=host ; --uts=host ; --userns=host ; --cap-add ; --device ;
    --security-opt ; rm -f ; rmi -f ; rm --force ; stack rm ; secret ; context ; plugin install ; kill ; trust ;
    volume remove
docker-compose = down -v ; down --volumes ; rm -f
kubectl oc k3s = delete ; drain ; cordon ; taint ; apply ; create ; replace ; patch ; edit ; scale ; exec ; cp ;
    attach ; port-forward ; proxy ; rollout ; set ; label ; annotate ; run ; expose ; debug ; get secret ; get secrets ;
    describe secret ; describe secrets ; config view --raw ; config set ; config set-credentials ; auth ;
    create token ; certificate
helm = install ; upgrade ; uninstall ; delete ; rollback ; push ; plugin
terraform tofu terragrunt = apply ; destroy ; import ; taint ; untaint ; state rm ; state mv ; state push ; state pull ;
    force-unlock ; login ; logout ; workspace delete ; output ; console ; show
pulumi cdk serverless sls sst = up ; deploy ; destroy ; remove ; rm ; refresh ; import ; cancel ; config --show-secrets
ansible-playbook ansible ansible-vault = ;
vercel netlify firebase wrangler flyctl fly railway render surge now eas fastlane gcloud heroku eb cap amplify =
    deploy ; up ; publish ; --prod ; --production ; secret ; secrets ; env ; login ; token ; auth ; config ; submit ;
    release
aws = configure ; s3 rm ; s3 rb ; s3 mv ; s3 cp ; s3 sync ; iam ; sts ; secretsmanager ; ssm ; kms ; lambda invoke ;
    lambda update-function-code ; ecr get-login-password ; sso ; cloudformation deploy ; organizations ; s3api ; logs
gcloud = auth ; secrets ; iam ; projects ; compute ssh ; kms
az = login ; account ; keyvault ; ad ; role
gh = auth ; secret ; repo delete ; repo archive ; repo rename ; repo edit ; gist ; release delete ; release create ;
    release upload ; alias set ; extension ; ssh-key ; gpg-key ; workflow ; codespace ; variable ; pr merge ; ruleset ;
    issue delete ; cache delete ; run cancel ; run delete ; config set ; api --method ; api -X ; api -f ; api -F ;
    api --field ; api --raw-field ; api --input ; api graphql ; repo create ; repo sync ; pr close ; label delete
glab hub = auth ; token ; delete ; release ; api ; variable ; merge
systemctl service rc-service = start ; stop ; restart ; reload ; enable ; disable ; mask ; unmask ; kill ; edit ;
    daemon-reload ; set-default ; isolate ; reboot ;
    poweroff ; halt ; suspend ; link ; import-environment ; set-environment
journalctl = --vacuum-size ; --vacuum-time ; --rotate ; --flush
ip = link set ; addr add ; addr del ; route add ; route del ; netns ; tuntap ; rule
history = -c ; -d ; -w ; -a ; -r ; -n ; -p ; -s
fc = ;
compgen complete = -C ; -F
enable = -f ; -n ; -d
bind = -x ; -f
mapfile readarray = -C
set = +o
ssh-keygen = -p ; -R ; -y ; -A
gpg gpg2 = --export-secret-keys ; --export-secret-subkeys ; --delete-secret-keys ; --delete-keys ; --decrypt ; -d ;
    --import
openssl = rsa ; pkey ; pkcs12 ; enc ; s_client ; s_server ; genrsa ; ec
dropdb dropuser createuser = ;
mysqladmin = drop ; shutdown ; password ; kill ; flush-privileges
pg_restore = --clean ; -c
redis-cli = flushall ; flushdb ; shutdown ; config ; eval ; script ; debug ; module ; slaveof ; replicaof ; del
prisma = migrate reset ; db push ; --force-reset ; --accept-data-loss ; migrate deploy
alembic = downgrade
flyway liquibase = clean ; dropall ; undo
tmux screen = kill-server ; -X
code cursor = --install-extension ; --uninstall-extension
claude codex gemini aider goose opencode amp crush cursor-agent copilot qwen cline kilo droid =
    --yolo ; -y ; --dangerously-skip-permissions ; --dangerously-bypass-approvals-and-sandbox ; --full-auto ; --yes ;
    --yes-always ; --allow-all-tools ; --auto-approve ; --approval-mode ; --permission-mode ; --allowedTools ; exec ;
    --force ; --allow-all ; -p ; --print ; run ; --trust-all-tools ; mcp add ; config
tar bsdtar = --to-command ; --checkpoint-action ; -P ; --absolute-names ; --use-compress-program ; -I ; --info-script ;
    --new-volume-script ; --rsh-command ; --rmt-command ; -F ; --remove-files ; --unlink-first ; --recursive-unlink
zip = -T ; -TT ; --unzip-command ; -m
rsync = -e ; --rsh ; --rsync-path ; --delete ; --delete-before ; --delete-after ; --delete-excluded ; --del ;
    --remove-source-files ; --password-file ; --files-from ; --config ; --daemon
scp sftp = -S ; -o ; -F ; -D
ssh = -o ; -F ; -R ; -L ; -D ; -w ; -A ; -E ; -S ; -I ; -J
telnet ftp tftp = ;
split = --filter
hostname = -F ; -b
dmesg = -c ; -C ; --clear ; --read-clear
go = -exec ; -toolexec ; env -w ; -vettool ; -overlay ; -modfile
gcc g++ clang cc ld = -wrapper ; -fplugin ; -B ; -specs
man = -P ; --pager ; -H ; --html ; -C
less more = -k ; -o ; -O ; --lesskey-file ; +!
vim vi nvim ex view = -c ; --cmd ; -S ; -u ; -s ; -es
emacs = --eval ; -eval ; --batch ; -l ; --load
gdb lldb = -ex ; -x ; -batch ; -o ; -s ; -p ; --pid ; --eval-command ; --command
strace ltrace = -p
node deno bun = --inspect ; --inspect-brk
php = -S ; -d
ruby = -S
screen = -dm
hash = -p ; -d
unset = HISTFILE ; HISTSIZE ; HISTCONTROL
nsupdate = ;
make gmake bmake = --eval ; SHELL= ; .SHELLFLAGS= ; MAKEFLAGS= ; MAKESHELL=
"""

VARIABLES_HARMLESS = re.compile(
    r"LC_[A-Z]+|LANG|LANGUAGE|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR|CLICOLOR_FORCE|CI|COLUMNS|LINES|TERM|COLORTERM"
)
VARIABLES_DANGEROUS = re.compile(
    r"(?!(NODE_ENV|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE|PYTHONHASHSEED|RUST_BACKTRACE|RUST_LOG|GOOS|GOARCH)$)(PATH|CDPATH|LD_.*|DYLD_.*|.*PAGER|GIT_.*|.*OPTS?|.*_OPTIONS|PYTHON.*|NODE_.*|BASH_.*|ENV|.*EDITOR|VISUAL|BROWSER|IFS"
    r"|PS[0-4]|PROMPT_COMMAND|PERL5?.*|RUBY.*|GEM_.*|BUNDLE_.*|JAVA_.*|JDK_.*|_JAVA.*|MAVEN_.*|GRADLE_.*|CLASSPATH|SHELL"
    r"|SHELLOPTS|BASHOPTS|HIST.*|HOME|XDG_.*|TMPDIR|ZDOTDIR|KSH.*|FPATH|MANOPT|LESS.*|MORE|GREP_.*|RIPGREP_CONFIG_PATH"
    r"|TAR_.*|GZIP|XZ_.*|SSH_.*|RSYNC_.*|CURL_.*|WGETRC|SSL_.*|.*_PROXY|.*_proxy|ALL_PROXY|NPM_.*|npm_.*|YARN_.*|PIP_.*|UV_.*"
    r"|CARGO.*|RUST.*|GO[A-Z]+|CC|CXX|LD|AR|MAKE.*|MAKEFLAGS|CMAKE_.*|PKG_.*|DOCKER_.*|KUBECONFIG|AWS_.*|GOOGLE_.*|AZURE_.*"
    r"|TERMINFO.*|TERMCAP|INPUTRC|LUA_.*|PHP.*|R_.*|JULIA_.*|GCONV_PATH|MALLOC_.*|NLSPATH|HOSTALIASES|RES_OPTIONS|LOCPATH"
    r"|FZF_.*|BAT_.*|EXINIT|VIMINIT|MYVIMRC|GTK_.*|QT_.*|DISPLAY|DBUS_.*|SUDO_.*|PKEXEC.*|FUNCNEST|EXECIGNORE|GLOBIGNORE"
    r"|COMP_.*|TMOUT|TIMEFORMAT|POSIXLY_CORRECT|TREADLE.*|ANTHROPIC_.*|OPENAI_.*|JUST_.*|DIRENV_.*|MISE_.*|ASDF_.*)"
)
VARIABLES_SAFE_TO_SHOW = frozenset(
    split_words("""
    HOME PWD OLDPWD USER LOGNAME SHELL PATH LANG TERM HOSTNAME HOSTTYPE OSTYPE MACHTYPE UID EUID RANDOM SECONDS LINENO
    BASH_VERSION SHLVL COLUMNS LINES EDITOR PAGER TZ LC_ALL LC_CTYPE TMPDIR CI PPID BASHPID IFS ? # $ ! 0 - @ * 1 2 3 4
    5 6 7 8 9 VIRTUAL_ENV PYTHONPATH PYTHONHOME PYENV_ROOT PYENV_VERSION CONDA_DEFAULT_ENV CONDA_PREFIX NODE_ENV
    NODE_PATH
    NVM_DIR GOPATH GOROOT GOBIN JAVA_HOME CARGO_HOME RUSTUP_HOME RUST_BACKTRACE ANDROID_HOME XDG_CONFIG_HOME
    XDG_CACHE_HOME XDG_DATA_HOME CC CXX MANPATH LD_LIBRARY_PATH VISUAL COLORTERM TERM_PROGRAM LC_MESSAGES NO_COLOR
    FORCE_COLOR HOMEBREW_PREFIX PIPESTATUS BASH_VERSINFO
""")
)
VARIABLES_SECRET = re.compile(
    r".*(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|APIKEY|ACCESS_?KEY|PRIVATE|_KEY\b|_PASS\b|_PWD\b|AUTH"
    r"|SESSION|COOKIE|DSN|DATABASE_URL|CONNECTION_STRING).*",
    re.IGNORECASE,
)

CODE = re.compile(
    r"""
    rm\s+-\w*[rf]|rmtree|\bunlink|os\.remove|os\.rmdir|removedirs|shutil|rimraf|rmSync|rmdirSync|unlinkSync|FileUtils|remove_tree
    |os\.system|subprocess|popen|child_process|\bexec|\bspawn|\beval\b|__import__|importlib|compile\(|\bfork\b|\bpty\b
    |\bsystem\b|\bdelete\b|\bremove\b|shell_exec|passthru|proc_open|\bqx\b|`|os\.exec|execSync|Runtime\.getRuntime|ProcessBuilder|Deno\.run
    |socket|urllib|requests|http\.client|httpx|aiohttp|\bfetch\(|https?://|net/http|net\.connect|LWP|open-uri|TCPSocket|ftplib
    |smtplib|paramiko|base64|fromhex|b64decode|unpack|fromCharCode|atob|codecs|ctypes|\bffi\b|dlopen|pickle|marshal|\bzlib\b
    |os\.environ|getenv|process\.env|\bENV\b|\$ENV|%ENV|setuid|chmod|chown|os\.kill|process\.kill|/dev/tcp|authorized_keys
    |\brequire\(["']?(fs|net|http|https|dgram|tls|vm|os)["']?\)|symlink|truncate\(|getattr\(|globals\(|\bDROP\b|\bTRUNCATE\b
    """,
    re.VERBOSE,
)
"""Words in program text that mean: it deletes, runs others, talks to the network, decodes or reads secrets."""

SQL = re.compile(
    r"\b(drop|delete|truncate|alter|update|insert|replace\s+into|grant|revoke|create|copy|flushall|flushdb|shutdown|config"
    r"|eval|load_file|outfile|dumpfile|load_extension|load\s+data|dropDatabase|deleteMany|deleteOne|remove|xp_cmdshell"
    r"|attach|pragma|vacuum|reindex|set\s+password)\b|\\!|\\o|\\copy|^\s*\.(shell|system|import|output|load|save|restore)",
    re.IGNORECASE,
)
SQL_CLIENTS = frozenset(
    split_words("""
    mysql mariadb psql sqlite3 sqlite mongosh mongo redis-cli sqlcmd clickhouse-client duckdb cqlsh influx cockroach
    snowsql bq usql pgcli mycli litecli
""")
)
DESTRUCTIVE_VERBS = re.compile(
    r"(.*[:_-])?(delete|destroy|terminate|purge|drop|wipe|nuke|revoke|remove|rm|rb|prune|reset|flush|fresh|erase|uninstall|truncate|rollback|"
    r"force-\w+)([:_-].*)?",
    re.IGNORECASE,
)
VERB_PROGRAMS = frozenset(
    split_words("""
    aws gcloud az doctl heroku flyctl fly railway vercel netlify firebase wrangler kubectl oc helm terraform tofu pulumi
    cdk serverless sls rails rake bin/rails artisan php manage.py prisma sequelize typeorm knex alembic flyway liquibase
    supabase planetscale pscale turso ibmcloud oci linode-cli hcloud scw nomad consul vault etcdctl rabbitmqctl
    kafka-topics mongosh gh glab dvc wandb eksctl kops minikube kind k3d vagrant virsh VBoxManage multipass lxc incus
""")
)
PRINTS_SECRETS = frozenset({"env", "printenv", "set", "export", "declare", "typeset", "readonly", "local"})


def always(name: str) -> str | None:
    """Say why a program is dangerous whatever its arguments, or None."""
    if name in ALWAYS:
        return ALWAYS[name]
    return next((why for pattern, why in ALWAYS.items() if "*" in pattern and fnmatchcase(name, pattern)), None)


def only_tells(name: str, arguments: Sequence[str]) -> bool:
    """Whether a program from `ALWAYS` is used in a form that only tells something."""
    if arguments and arguments[0] in ("--version", "--help", "-V") and len(arguments) == 1:
        return True
    return (arguments[0] if arguments else "") in _READ_FORMS.get(name, ())


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
    if name in VERB_PROGRAMS:
        for word in arguments:
            if not word.startswith("-") and "/" not in word and DESTRUCTIVE_VERBS.fullmatch(word):
                return f"{name} {word}"
    return None


def _present(wanted: str, arguments: Sequence[str]) -> bool:
    if wanted.endswith("="):
        return any(word.startswith(wanted) for word in arguments)
    if not wanted.startswith("-"):
        return wanted in arguments
    if wanted.startswith("--"):
        bare = wanted.partition("=")
        return any(
            word == wanted or word.startswith(wanted + "=") or (bare[1] and word == bare[0] and bare[2] in arguments)
            for word in arguments
        )
    if len(wanted) > 2:
        return any(word == wanted or word.startswith(wanted + "=") for word in arguments)
    if wanted == "-":
        return "-" in arguments
    return any(word.startswith("-") and not word.startswith("--") and wanted[1] in word[1:] for word in arguments)
