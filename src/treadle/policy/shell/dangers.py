"""What is dangerous by name: programs, subcommands, variables, and words in the code of other languages."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from treadle.policy.marks import word_set

_ALWAYS_TEXT = """
gains other permissions = sudo su doas pkexec runuser sudoedit sg newgrp chroot unshare nsenter setpriv run0 gosu
    su-exec capsh machinectl systemd-nspawn flatpak-spawn distrobox toolbox sudo-rs please
changes disks or file systems = mkfs mkfs.* mke2fs mkswap fdisk sfdisk cfdisk gdisk sgdisk parted wipefs blkdiscard
    hdparm badblocks shred srm wipe mount umount losetup swapon swapoff cryptsetup lvremove vgremove pvremove lvcreate
    mdadm zpool zfs dmsetup debugfs tune2fs resize2fs fsck fsck.* e2fsck diskutil mkdosfs newfs scrub bleachbit btrfs
    hdiutil fstrim mknod nvme xfs_* sg_format partprobe kpartx mount.*
stops or reconfigures the machine = shutdown reboot halt poweroff init telinit kexec insmod rmmod modprobe sysctl
    grub-install nvram csrutil spctl setenforce apparmor_parser bcdedit timedatectl hwclock hostnamectl localectl
    loginctl domainname ntpdate chronyd depmod dkms update-initramfs mkinitcpio dracut update-grub grub-mkconfig
    grub2-mkconfig efibootmgr bootctl mokutil bless tmutil softwareupdate fdesetup semanage ldconfig auditctl wevtutil
    faillock sv s6-svc svc initctl rtcwake pm-suspend pmset systemsetup
makes something run later = at batch atrm crontab launchctl systemd-run chkconfig update-rc.d rc-update anacron
    schtasks dbus-send
changes accounts = useradd userdel usermod groupadd groupdel groupmod adduser deluser addgroup delgroup passwd
    chpasswd visudo vipw vigr chsh chfn gpasswd pwck dscl dseditgroup sysadminctl htpasswd
changes the network or its protection = iptables ip6tables iptables-restore ebtables arptables nft ufw firewall-cmd
    pfctl ipfw ifconfig route nmcli wg wg-quick tcpdump tshark dumpcap ettercap arpspoof nmap masscan networksetup
    ipset fail2ban-client tc bridge ethtool arp brctl iw iwconfig rfkill resolvectl scutil dhclient dhcpcd openvpn
    ipsec hping3 zmap
changes permissions of files beyond their mode = setcap setfacl chattr chflags chcon restorecon
ends processes by pattern = killall killall5 pkill skill xkill fuser
opens a raw connection = nc ncat netcat nc.openbsd nc.traditional socat cryptcat websocat chisel ngrok cloudflared
    localtunnel lt tailscale autossh sshuttle iodine gnutls-cli pwncat dnscat rtorrent
sends data to others = mail mailx sendmail msmtp mutt neomutt swaks wormhole magic-wormhole croc pastebinit slackcat
    telegram-send lftp ncftpput tftp smbclient sshfs sshpass mosh mosquitto_pub kafka-console-producer wall write
records the screen, the keys or the microphone = screencapture scrot gnome-screenshot spectacle maim flameshot grim
    arecord parecord xinput showkey evtest xev logkeys
shows the memory of other programs = gcore procenv pargs
reads or changes stored credentials = security secret-tool pass gopass op bw lpass vault keyring ssh-add ssh-copy-id
    ssh-agent aws-vault doppler chamber sops age-keygen kinit klist mimikatz
changes packages of the system = apt apt-get aptitude dpkg rpm yum dnf zypper pacman apk emerge snap flatpak brew port
    choco winget scoop
controls the desktop = osascript xdotool wmctrl ydotool defaults dconf gsettings pbcopy pbpaste xclip xsel wl-copy
    wl-paste
controls another program or agent = treadle gdbserver reptyr dtach expect
runs text in a language of its own = pwsh powershell elvish xonsh
is for a person at a terminal = pinfo lynx elinks w3m
does what its input names = cpio pax afio
"""
ALWAYS: dict[str, str] = {
    name: row.partition(" = ")[0]
    for row in filter(None, _ALWAYS_TEXT.replace("\n    ", " ").splitlines())
    for name in row.partition(" = ")[2].split()
}
"""Program patterns and why they are dangerous whatever their arguments."""

_SHOWS = re.compile(
    r"list(-[a-z]+)?|show|search|info|policy|status|statistics|help|doctor|general|dev|deps|outdated|--prefix|--list|--status"
)
_SHOWS_LETTERS = {
    "dpkg": "lLsS",
    "rpm": "q",
    "pacman": "Q",
    "crontab": "l",
    "ethtool": "iSk",
    "arp": "an",
    "route": "n",
    "pmset": "g",
}
_MANAGERS = word_set("""
    apt brew dpkg rpm dnf pacman apk snap flatpak crontab treadle ethtool arp route pmset ifconfig mount timedatectl
    hostnamectl localectl loginctl iw iwconfig rfkill resolvectl tc nmcli bootctl efibootmgr tmutil domainname
""")
"""Programs of the first table that show something when they are told nothing, or told to show it; they ask even so."""

VARIABLES_HARMLESS = re.compile(
    r"LC_[A-Z]+|LANG|LANGUAGE|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR|CLICOLOR_FORCE|CI|COLUMNS|LINES|TERM|COLORTERM"
)
_DANGEROUS_TEXT = """
    PATH CDPATH LD_.* DYLD_.* .*PAGER GIT_.* .*OPTS? .*_OPTIONS PYTHON.* NODE_.* BASH_.* ENV .*EDITOR VISUAL BROWSER IFS
    PS[0-4] PROMPT_COMMAND PERL5?.* RUBY.* GEM_.* BUNDLE_.* JAVA_.* JDK_.* _JAVA.* MAVEN_.* GRADLE_.* CLASSPATH SHELL
    SHELLOPTS BASHOPTS HIST.* HOME XDG_.* TMPDIR ZDOTDIR KSH.* FPATH MANOPT LESS.* MORE GREP_.* RIPGREP_CONFIG_PATH
    TAR_.* GZIP XZ_.* SSH_.* RSYNC_.* CURL_.* WGETRC SSL_.* .*_PROXY .*_proxy ALL_PROXY NPM_.* npm_.* YARN_.* PIP_.*
    UV_.* CARGO.* RUST.* GO[A-Z]+ CC CXX LD AR MAKE.* MAKEFLAGS CMAKE_.* PKG_.* DOCKER_.* KUBECONFIG AWS_.* GOOGLE_.*
    AZURE_.* TERMINFO.* TERMCAP INPUTRC LUA_.* PHP.* R_.* JULIA_.* GCONV_PATH MALLOC_.* NLSPATH HOSTALIASES RES_OPTIONS
    LOCPATH UNZIP UNZIPOPT ZIPOPT OPENSSL_.* PSQLRC PG(PASSFILE|SERVICE|SERVICEFILE|SYSCONFDIR|HOST|HOSTADDR) MYSQL_.*
    SQLITE_.* GNUPGHOME CVS_.* SVN_.* HG HG[A-Z]+ TF_.* ERL_.* ELIXIR_.* GUILE_.* EMACS.* GIO_.* LIBRARY_PATH
    C_INCLUDE_PATH CPLUS_INCLUDE_PATH CPATH COMPILER_PATH GCC_.* CCACHE_.* DISTCC_.* MAN[A-Z]+ GROFF_.* VAULT_.*
    ANSIBLE_.* HELM_.* GH_.* GITLAB_.* KRB5.* ASAN_.* UBSAN_.* TSAN_.* LSAN_.* WINEPREFIX LV2_PATH GST_.* TCLLIBPATH
    OCAML.* CAML_.* GHC.* STACK_.* DOTNET_.* FZF_.* BAT_.* EXINIT VIMINIT MYVIMRC GTK_.* QT_.* DISPLAY DBUS_.* SUDO_.*
    PKEXEC.* FUNCNEST EXECIGNORE GLOBIGNORE COMP_.* TMOUT TIMEFORMAT POSIXLY_CORRECT TREADLE.* ANTHROPIC_.* OPENAI_.*
    JUST_.* DIRENV_.* MISE_.* ASDF_.*
"""
VARIABLES_DANGEROUS = re.compile(
    r"(?!(NODE_ENV|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE|PYTHONHASHSEED|RUST_BACKTRACE|RUST_LOG|GOOS|GOARCH)$)"
    f"({'|'.join(_DANGEROUS_TEXT.split())})"
)
VARIABLES_SAFE_TO_SHOW = word_set("""
    HOME PWD OLDPWD USER LOGNAME SHELL PATH LANG TERM HOSTNAME HOSTTYPE OSTYPE MACHTYPE UID EUID RANDOM SECONDS LINENO
    BASH_VERSION SHLVL COLUMNS LINES EDITOR PAGER TZ LC_ALL LC_CTYPE TMPDIR CI PPID BASHPID IFS ? # $ ! 0 - @ * 1 2 3 4
    5 6 7 8 9 VIRTUAL_ENV PYTHONPATH PYTHONHOME PYENV_ROOT PYENV_VERSION CONDA_DEFAULT_ENV CONDA_PREFIX NODE_ENV
    NODE_PATH
    NVM_DIR GOPATH GOROOT GOBIN JAVA_HOME CARGO_HOME RUSTUP_HOME RUST_BACKTRACE ANDROID_HOME XDG_CONFIG_HOME
    XDG_CACHE_HOME XDG_DATA_HOME CC CXX MANPATH LD_LIBRARY_PATH VISUAL COLORTERM TERM_PROGRAM LC_MESSAGES NO_COLOR
    FORCE_COLOR HOMEBREW_PREFIX PIPESTATUS BASH_VERSINFO
""")
VARIABLES_SECRET = re.compile(
    r".*(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|APIKEY|ACCESS_?KEY|PRIVATE|_KEY\b|_PASS\b"
    r"|_PWD\b|AUTH"
    r"|SESSION|COOKIE|DSN|DATABASE_URL|CONNECTION_STRING).*",
    re.IGNORECASE,
)

CODE = re.compile(
    r"""
    rm\s+-\w*[rf]|rmtree|\bunlink|os\.remove|os\.rmdir|removedirs|shutil|rimraf|rmSync|rmdirSync|unlinkSync|FileUtils|remove_tree
    |os\.(rename|replace)|renameSync|File\.rename|Path\([^)]*\)\.(rename|replace)
    |os\.system|subprocess|popen|child_process|\bexec|\bspawn|\beval\b|__import__|importlib|compile\(|\bfork\b|\bpty\b
    |\bsystem\b|\bdelete\b|\bremove\b|shell_exec|passthru|proc_open|\bqx\b|`|os\.exec|execSync|Runtime\.getRuntime
    |ProcessBuilder|Deno\.run
    |socket|urllib|requests\.\w+\(|requests\s+as|from\s+requests|requests[\"']|http\.client|httpx|aiohttp|\bfetch\(|https?://|net/http|net\.connect|LWP|open-uri
    |TCPSocket|ftplib
    |smtplib|paramiko|base64|fromhex|b64decode|unpack|fromCharCode|atob|codecs|ctypes|\bffi\b|dlopen|pickle|marshal
    |\bzlib\b
    |IO::Socket|Net::|fsockopen|stream_socket|phpinfo|Open3|\bsyscall\b|\.execute\(\)|Process\.(Start|spawn)|\bkqueue\b
    |Remove-Item|Invoke-\w+|\bIEX\b|DownloadString|DownloadFile|Start-Process|Net\.WebClient|FromBase64String
    |Set-ExecutionPolicy|Stop-Computer|Format-Volume|Clear-Content|Get-Clipboard|Get-Credential
    |os\.environ|getenv|process\.env|\bENV\b|\$ENV|%ENV|setuid|chmod|chown|os\.kill|process\.kill|/dev/tcp
    |authorized_keys
    |\brequire\(["']?(fs|net|http|https|dgram|tls|vm|os)["']?\)|symlink|truncate\(|getattr\(|globals\(|\bDROP\b
    |\bTRUNCATE\b
    """,
    re.VERBOSE,
)
"""Words in program text that mean: it deletes, runs others, talks to the network, decodes or reads secrets."""

SQL = re.compile(
    r"\b(drop|delete|truncate|alter|update|insert|replace\s+into|grant|revoke|create|copy|flushall|flushdb"
    r"|shutdown|config"
    r"|eval|load_file|outfile|dumpfile|load_extension|load\s+data|dropDatabase|deleteMany|deleteOne|remove|xp_cmdshell"
    r"|attach|pragma|vacuum|reindex|set\s+password|pg_read_\w+|pg_ls_\w+|lo_import|lo_export"
    r"|pg_terminate_backend|pg_cancel_backend"
    r"|pg_reload_conf|pg_shadow|pg_authid|authentication_string|readfile|writefile|fsdir|dblink|lo_put|xp_\w+"
    r"|moz_cookies|moz_logins|read_csv|read_text|read_blob|system\s+\w+|source\s+\w\S*)\b|\bedit\(|\\!|\\o"
    r"|\\copy|\\password|\\g\s*\S"
    r"|^\s*\.(shell|system|import|output|load|save|restore|once|excel|read|backup|archive|ar|edit|log|cd|clone|dump)\b",
    re.IGNORECASE,
)
SQL_CLIENTS = word_set("""
    mysql mariadb psql sqlite3 sqlite mongosh mongo redis-cli sqlcmd clickhouse-client duckdb cqlsh influx cockroach
    snowsql bq usql pgcli mycli litecli
""")
PRINTS_SECRETS = frozenset({"env", "printenv", "set", "export", "declare", "typeset", "readonly", "local"})


_EMPTIES_SOMETHING = re.compile(r"[a-z]+[-_](empty|purge|wipe|erase|destroy|nuke)")
_ALWAYS_PATTERNS = tuple((pattern, why) for pattern, why in ALWAYS.items() if "*" in pattern)


@lru_cache(maxsize=1024)
def always(name: str) -> str | None:
    """Say why a program is dangerous whatever its arguments, or None."""
    if name in ALWAYS:
        return ALWAYS[name]
    if _EMPTIES_SOMETHING.fullmatch(name):
        return "says by its name that it destroys"
    return next((why for pattern, why in _ALWAYS_PATTERNS if fnmatchcase(name, pattern)), None)


def only_tells(name: str, arguments: Sequence[str]) -> bool:
    """Whether a program from `ALWAYS` is used in a form that only tells something."""
    if list(arguments) in (["--version"], ["--help"], ["-V"]):
        return True
    first = "".join(arguments[:1])
    letters = first.startswith("-") and set(first[1:]) <= set(_SHOWS_LETTERS.get(name, "") + "ailps")
    letters = letters and not set(first[1:]).isdisjoint(_SHOWS_LETTERS.get(name, ""))
    return (
        name in _MANAGERS
        and len(arguments) <= 2
        and ((not first and name != "crontab") or letters or bool(_SHOWS.fullmatch(first)))
    )
