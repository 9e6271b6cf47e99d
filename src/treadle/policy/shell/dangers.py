"""What is dangerous by name: programs, subcommands, variables, and words in the code of other languages."""

import re
from collections.abc import Sequence
from functools import lru_cache

from treadle.policy.marks import table_rows, word_set

_ALWAYS_TEXT = r"""
gains other permissions = sudo(-rs|edit)? su doas pkexec runuser sg newgrp chroot unshare nsenter setpriv run0 gosu
    su-exec capsh machinectl systemd-nspawn flatpak-spawn distrobox toolbox please
changes disks or file systems = (mkfs|fsck)(\..*)? (mke|tune|resize)2fs e2fsck mkswap [cs]?[fg]disk parted wipefs
    blkdiscard hdparm badblocks shred srm wipe mount(\..*)? umount losetup swapo(n|ff) cryptsetup
    [lpv][vg](create|remove) mdadm zpool zfs dmsetup debugfs diskutil mkdosfs newfs scrub bleachbit btrfs hdiutil fstrim
    mknod nvme xfs_.* sg_format partprobe kpartx
~stops or reconfigures the machine = shutdown reboot halt poweroff (tel)?init kexec (ins|rm|dep)mod modprobe
    grub2?-(install|mkconfig) update-grub (sys|sp|timedate|hostname|locale|login|boot|audit|init)ctl nvram csrutil
    setenforce apparmor_parser bcdedit hwclock domainname ntpdate chronyd dkms update-initramfs mkinitcpio dracut
    efibootmgr mokutil bless tmutil softwareupdate fdesetup semanage ldconfig wevtutil faillock (s6-)?svc sv rtcwake
    pm-suspend pmset systemsetup
~makes something run later, or again = at batch atrm crontab launchctl systemd-run chkconfig update-rc.d rc-update
    anacron schtasks dbus-send fc
changes accounts or databases = (user|group)(add|del|mod) (add|del)(user|group) (ch|g|ht)?passwd visudo vipw vigr
    ch(sh|fn) pwck dscl dseditgroup sysadminctl createuser drop(db|user)
@changes the network or its protection = ip6?tables iptables-restore (eb|arp)tables nft ufw firewall-cmd pfctl ipfw
    ifconfig route nmcli wg(-quick)? tcpdump tshark dumpcap ettercap arpspoof nmap masscan networksetup ipset
    fail2ban-client tc bridge ethtool arp brctl iw(config)? rfkill resolvectl scutil dhclient dhcpcd openvpn ipsec
    hping3 zmap nsupdate
~changes permissions of files beyond their mode = set(cap|facl) ch(attr|flags|con) restorecon
~ends processes by pattern = killall5? [psx]kill fuser
opens a raw connection = nc(\..*)? ncat netcat socat cryptcat websocat chisel ngrok cloudflared localtunnel lt tailscale
    autossh sshuttle iodine gnutls-cli pwncat dnscat rtorrent telnet
sends data to others = mailx? sendmail msmtp mutt neomutt swaks (magic-)?wormhole croc pastebinit slackcat telegram-send
    (l|t)?ftp ncftpput smbclient sshfs sshpass mosh mosquitto_pub kafka-console-producer wall write
~records the screen, the keys or the microphone = screencapture scrot gnome-screenshot spectacle maim flameshot grim
    p?arecord xinput showkey evtest xev logkeys
~shows the memory of other programs = gcore procenv pargs
reads or changes stored credentials = security secret-tool pass gopass op bw lpass vault keyring ssh-(add|agent|copy-id)
    aws-vault doppler chamber sops age-keygen kinit klist mimikatz gpg-connect-agent
changes packages of the system = apt(itude|-get|-key|-mark)? add-apt-repository dpkg rpm yum dnf zypper pacman apk
    emerge snap flatpak brew port mas choco winget scoop cpanm? nix-(env|collect-garbage) nixos-rebuild home-manager
    guix yay paru xbps-(install|remove)
administers other machines = ansible(-(playbook|vault|pull|galaxy|console))? salt(-call|-ssh)? puppet
    chef-(client|solo|run) knife surge
~controls the desktop = osascript xdotool wmctrl y?dotool wtype defaults dconf gsettings pb(copy|paste) xclip xsel
    wl-(copy|paste) swaymsg i3-msg hyprctl gdbus qdbus.*
controls another program or agent = treadle gdbserver reptyr dtach expect
~runs text in a language of its own = pwsh powershell elvish xonsh
~is for a person at a terminal = pinfo lynx elinks w3m lazygit
~does what its input names = cpio pax afio bfg parallel
~starts the program that follows = ld(-linux|-musl|-lsb|\.so).* ld64\.so.*
says by its name that it destroys = [a-z]+[-_](empty|purge|wipe|erase|destroy|nuke)
"""
_ALWAYS = {why: re.compile("|".join(names.split())) for why, names in table_rows(_ALWAYS_TEXT)}
"""Patterns of programs by why they are dangerous whatever their arguments.

`~`: a confinement keeps them from it, or lets them do it to nothing but the session's own; `@`: one without a network.
"""

_ONLY_TELLS = re.compile(
    r"(apt|brew|dnf|apk|snap) (list|show|search|info|--version|--prefix).*|dpkg -[lLsS].*|rpm -q.*|crontab -l|ifconfig"
    r"|mount|init(?!.* [0-6sS]( |$))( .*)?|arp( -a)?|route( -n)?|treadle( --(version|help))?"
    r"|(tshark|tcpdump)( -[nqvVxXAe]+| -[rYTec] [^ ]+)*( -r [^ ]+)( -[nqvVxXAe]+| -[YTec] [^ ]+)*( -z [\w,.]+)?"
)
"""Uses of such programs that only tell something."""


def always(name: str, arguments: Sequence[str]) -> str | None:
    """Say why a program is dangerous but where it only tells something, or None."""
    why = _why(name)
    return None if why is None or _ONLY_TELLS.fullmatch(" ".join((name, *arguments))) else why


@lru_cache(maxsize=1024)
def _why(name: str) -> str | None:
    return next((why for why, names in _ALWAYS.items() if names.fullmatch(name)), None)


VARIABLES_HARMLESS = re.compile("LC_[A-Z]+|LANG(UAGE)?|TZ|(NO|FORCE)_COLOR|CLICOLOR|CI|COLUMNS|LINES|(COLOR)?TERM")
_DANGEROUS_TEXT = """
    .*(PAGER|EDITOR|OPTS?|_OPTIONS|_PROXY|_proxy)$ (GNUPG)?HOME$ (C|CD|CLASS|F|LOC|NLS|TCLLIB)?PATH$
    (AR|BROWSER|CC|CXX|DISPLAY|ENV|GZIP|IFS|LD|MORE|SHELL|UNZIP|VISUAL)$ (INPUT|MYVIM|PSQL|WGET)RC$ (A|L|T|UB)SAN_
    ANSIBLE_ ANTHROPIC_ ASDF_ AWS_ AZURE_ BASH_ BAT_ BUNDLE_ CAML_ CARGO CCACHE_ CMAKE_ COMP_ COMPILER_PATH$
    CPLUS_INCLUDE_ CURL_ CVS_ C_INCLUDE_ DBUS_ DIRENV_ DISTCC_ DOCKER_ DOTNET_ DYLD_ ELIXIR_ EMACS ERL_ EXECIGNORE
    EXINIT FUNCNEST FZF_ GCC_ GCONV_ GEM_ GHC GH_ GIO_ GITLAB_ GIT_ GLOBIGNORE GO[A-Z]+$ GOOGLE_ GRADLE_ GREP_ GROFF_
    GST_ GTK_ GUILE_ HELM_ HG[A-Z]*$ HIST HOSTALIASES JAVA_ JDK_ JULIA_ JUST_ KRB5 KSH KUBECONFIG LD_ LESS LIBRARY_PATH$
    LUA_ LV2_ MAKE MALLOC_ MAN[A-Z]+$ MAVEN_ MISE_ MYSQL_ NODE_ NPM_ OCAML OPENAI_ OPENSSL_ PERL
    PG(PASSFILE|SERVICE(FILE)?|SYSCONFDIR|HOST(ADDR)?)$ PHP PIP_ PKEXEC PKG_ POSIXLY_CORRECT PROMPT_COMMAND PS[0-4]$
    PYTHON QT_ RIPGREP_ RSYNC_ RUBY RUST R_  SQLITE_ SSH_ SSL_ STACK_ SUDO_ SVN_ TAR_ TERMCAP TERMINFO TF_ TIMEFORMAT
    TMOUT TMPDIR TREADLE  UV_ VAULT_ VIMINIT WINEPREFIX XDG_ XZ_ YARN_ ZDOTDIR _JAVA npm_
"""
VARIABLES_DANGEROUS = re.compile(
    r"(?!(NODE_ENV|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE|PYTHONHASHSEED|RUST_BACKTRACE|RUST_LOG|GOOS|GOARCH)$)"
    f"({'|'.join(_DANGEROUS_TEXT.split())}).*"
)
"""Variables that programs obey: what their names begin with, or with `$` the whole of them."""

VARIABLES_SAFE_TO_SHOW = word_set("""
    ? # $ ! 0 - @ * 1 2 3 4 5 6 7 8 9 HOME PWD OLDPWD USER LOGNAME SHELL PATH LANG TERM HOSTNAME UID RANDOM SECONDS
    LINENO PIPESTATUS COLUMNS EDITOR TMPDIR CI PPID VIRTUAL_ENV PYTHONPATH NODE_ENV GOPATH JAVA_HOME
""")
VARIABLES_SECRET = re.compile(
    r".*(TOKEN|SECRET|PASSW(OR)?D|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE|_KEY\b|_PASS\b|_PWD\b|AUTH"
    r"|_SESSION\b|OP_SESSION|COOKIE|DSN|DATABASE_URL|CONNECTION_STRING).*",
    re.IGNORECASE,
)

CODE = re.compile(
    r"""
    rm\s+-\w*[rf]|rmtree|\brmdir|remove(dirs|_tree)|\bremove(x|\b)|\bdelete\b|unlink|shutil|rimraf|rmSync|FileUtils
    |(os|File|Path\([^)]*\))\.(rename|replace)|renameSync|chmod|chown|setuid|authorized_keys|\b(DROP|TRUNCATE)\b
    |\bexec|shell_exec|\bspawn|\beval\b|popen|subprocess|child_process|__import__|importlib|compile\(|\bfork\b|\bpty\b|\bsystem\b|`
    |passthru|proc_open|\bqx\b|getRuntime|ProcessBuilder|Process\.Start|Deno\.run|Open3|\bsyscall\b|(os|process)\.kill
    |socket|fsockopen|(TCP|IO::)Socket|/dev/tcp|urllib|requests(\.\w+\(|\s+as|["'])|from\s+requests|https?://
    |http\.client|httpx|aiohttp|\bfetch\(|net/http|net\.connect|Net(::|\.WebClient)|LWP|open-uri|(ft|smt)plib|paramiko
    |[Bb]ase64|b64decode|fromhex|fromCharCode|atob|unpack|codecs|ctypes|\bffi\b|dlopen|pickle|marshal|\bzlib\b
    |os\.environ|getenv|process\.env|\bENV\b|phpinfo|symlink|(getattr|globals|truncate)\(|\bkqueue\b
    |\brequire\(["']?(fs|net|https?|dgram|tls|vm|os)\b
    |(Clear|Format|Remove|Start|Stop)-[A-Z]|Get-C|Set-E|Invoke-\w|\bIEX\b|Download(String|File)
    """,
    re.VERBOSE,
)
"""Words in program text that mean: it deletes, runs others, talks to the network, decodes or reads secrets."""

SQL = re.compile(
    r"\b(drop(database)?|delete(many|one)?|truncate|alter|update|insert|replace\s+into|grant|revoke|create|copy|remove"
    r"|flush(all|db)|shutdown|config|eval|load(_file|_extension|\s+data)|(out|dump|read|write)file|attach|pragma|vacuum"
    r"|reindex|set\s+password|pg_(read|ls|terminate|cancel|reload|shadow|authid)\w*|lo_\w+|xp_\w+|moz_\w+|fsdir|dblink"
    r"|authentication_string|read_(csv|text|blob)|(system|source)\s+\w\S*)\b|\bedit\(|\\(!|o|copy|password|g\s*\S)"
    r"|^\s*\.(shell|system|import|output|load|save|restore|once|excel|read|backup|archive|ar|edit|log|cd|clone|dump)\b",
    re.IGNORECASE,
)
SQL_CLIENTS = word_set("""
    mysql mariadb psql sqlite3 sqlite mongosh mongo redis-cli sqlcmd clickhouse-client duckdb cqlsh influx cockroach
    snowsql bq usql pgcli mycli litecli
""")
PRINTS_SECRETS = frozenset({"env", "printenv", "set", "export", "declare", "typeset", "readonly", "local"})
