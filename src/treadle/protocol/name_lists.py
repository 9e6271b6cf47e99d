"""The one table of names: what makes programs run later, and what is secret. Every guard looks here, and nowhere else.

All but `SHOWN_OF_HOME` in small letters; `*` stands for any text within a name. A word that is also an ordinary one,
such as `token` or `pre-commit`, stands here only with what makes it telling: an ending, a leading dot, or the directory
before it.
"""

_words = str.split

CONTROL_DIRECTORIES = _words("""
    .git *.git .hg .svn .jj .bzr _darcs .pijul .sl .git-hooks .githooks .git_hooks .husky .lefthook .overcommit
    .treadle .claude .cursor .codex .gemini .cline .clinerules .roo .kilocode .continue .windsurf .opencode .kiro
    .augment .qwen .goose .crush .factory .junie .trae .amp .agents .agent .aider .amazonq .openhands .warp .void
    .copilot .cody .sourcegraph .codeium .tabnine .rovodev .qodo .plandex .gptme .iflow .codebuddy .lingma .zencoder
    .forge .mcp .devin .jules .replit .pearai .antigravity .vscode .vscode-server .vscode-insiders .vscode-oss
    .vscodium .idea .fleet .zed .vs .nova .run .settings .externaltoolbuilders .theia nbproject .emacs.d .vim .nvim
    .doom.d .spacemacs.d .helix .kakrc.d .circleci .buildkite .woodpecker .teamcity .semaphore .tekton .harness
    .builds .gitea .forgejo .gitpod .direnv .mise .devcontainer .ipython .jupyter .mvn .ssh .gnupg .aws .kube .azure
    .password-store .bashrc.d .bash_profile.d .profile.d .zshrc.d .oh-my-zsh .oh-my-bash .bash_it .zprezto .fish .tmux
    .xmonad launchagents launchdaemons cron.d cron.daily cron.hourly cron.weekly cron.monthly sudoers.d profile.d
    init.d rc.local.d ld.so.conf.d modprobe.d environment.d pam.d .aiassistant .composer .cabal .opam .sbt .ivy2
    .luarocks .nuget .micro .config
""")
"""Directories below which nothing is written without asking."""

CONTROL_FILES = _words("""
    .gitmodules .gitconfig .gitconfig.* .gitconfig-* .lfsconfig .hgrc .mcp.json mcp.json .mcp.local.json mcp_config.json
    mcp-config.json mcp_settings.json claude_desktop_config.json cline_mcp_settings.json .claude.json .envrc .envrc.*
    .direnvrc .autoenv .autoenv.zsh *.code-workspace *.sublime-project *.sublime-workspace *.ipr *.iws .bashrc .bashrc.*
    .bashrc_* .bash_profile .bash_profile.* .bash_login .bash_logout .bash_aliases .bash_functions .bash_env
    .bash_completion .profile .zshrc .zshrc.* .zshenv .zprofile .zlogin .zlogout .zsh_aliases .aliases .kshrc .mkshrc
    .shrc .shinit .cshrc .tcshrc .login .logout .xonshrc .elvishrc .inputrc .editrc .lessfilter .lesskey .lessopen
    profile.ps1 *_profile.ps1 .xinitrc .xprofile .xserverrc .xsession .xsessionrc .xbindkeysrc .pam_environment .vimrc
    .vimrc.* _vimrc .local.vimrc .gvimrc .ideavimrc .exrc .nvimrc .nvim.lua .lvimrc .emacs .emacs.el .spacemacs
    .dir-locals*.el .ycm_extra_conf.py .nanorc .kakrc .sublimelinterrc .tmux.conf .tmux.conf.* .screenrc .wezterm.lua
    .hammerspoon .yabairc .skhdrc .bspwmrc .gdbinit .gdbearlyinit .lldbinit .pythonrc .pythonrc.py .pythonstartup .pdbrc
    .pdbrc.py .irbrc .pryrc .rprofile .rprofile.site .renviron .ghci .ocamlinit .sbclrc .clisprc .eclrc .iex.exs .erlang
    .octaverc .guile .luarc .psqlrc .sqliterc .duckdbrc .my.cnf .mongorc.js .mongoshrc.js .mysqlshrc .curlrc _curlrc
    .wgetrc .ripgreprc .hushlogin .rhosts .shosts .forward .procmailrc .mailcap .mailrc .muttrc .tigrc .npmrc .yarnrc
    .yarnrc.* .pnpmfile.* .pnp.* bunfig.toml .bunfig.toml .pypirc pip.conf pip.ini .pydistutils.cfg .netrc _netrc
    .git-credentials .condarc .mambarc .gemrc .bazelrc .bazeliskrc .buckconfig .buckconfig.local .jvmopts .sbtopts
    .mavenrc .antrc init.gradle init.gradle.kts .pre-commit-*.yaml .pre-commit-config.yml prek.toml lefthook.*
    .lefthook.* lefthook-local.* .lefthook-local.* .overcommit.yml .huskyrc .huskyrc.* husky.config.js
    .simple-git-hooks.* simple-git-hooks.* .lintstagedrc .lintstagedrc.* lint-staged.config.* captainhook.json grumphp.*
    .rusty-hook.toml .mise.toml .mise.*.toml mise.toml mise.*.toml .miserc.toml .rtx.toml .asdfrc agents.md agents.*.md
    agent.md claude.md claude.*.md gemini.md qwen.md codex.md warp.md crush.md opencode.md replit.md treadle.md
    copilot-instructions.md *.instructions.md *.prompt.md *.chatmode.md .rules .cursorrules .cursorignore .windsurfrules
    .clinerules .roorules .traerules .junierules .goosehints .roomodes .aider.*.yml .aider.conf.yaml .aiderignore
    .clineignore .agentignore .treadleignore .codeiumignore .geminiignore .rooignore .claudeignore .windsurfignore
    sitecustomize.py usercustomize.py opencode.json opencode.jsonc .crush.json crush.json .augment-guidelines
    .gitlab-ci.* .travis.* .drone.yml .drone.yaml .drone.jsonnet .drone.star .woodpecker.* azure-pipelines.*
    azure-pipelines-*.yml bitbucket-pipelines.* jenkinsfile jenkinsfile.* *.jenkinsfile appveyor.yml .appveyor.yml
    .cirrus.yml .cirrus.star .build.yml .semaphore.yml cloudbuild.* buildspec.* codefresh.yml screwdriver.yaml
    wercker.yml shippable.yml codemagic.yaml bitrise.yml .devcontainer.json .gitpod.yml .gitpod.dockerfile replit.nix
    authorized_keys authorized_keys2 authorized_principals known_hosts known_hosts2 ssh_config sshd_config .k5login
    crontab .crontab anacrontab sudoers doas.conf shadow passwd ld.so.preload rc.local .selected_editor .gitattributes
    codeowners nuget.config uv.toml poetry.toml .mixrc .pnpmrc apt.conf sources.list .augmentignore
    .cursorindexingignore
""")
"""Files that are not written without asking."""

CONTROL_PATHS = _words("""
    .github/workflows .github/actions .github/instructions .github/prompts .github/chatmodes .github/agents
    .github/skills .github/hooks .github/dependabot.yml .github/dependabot.yaml .gitlab/ci .yarn/releases .yarn/plugins
    .docker/config.json .docker/cli-plugins .local/bin .local/share .pip/pip.conf .cargo/bin .cargo/config
    .cargo/config.toml .cargo/env .bundle/config .bundle/plugin .gradle/init.d .gradle/gradle.properties
    .m2/settings.xml .m2/extensions.xml .npm-global/bin .vnc/xstartup .stack/config.yaml .fluxbox/startup
    .kde/autostart .kde4/autostart programs/startup etc/systemd systemd/system systemd/user spool/cron xdg/autostart
    gradle/wrapper/gradle-wrapper.jar gradle/wrapper/gradle-wrapper.properties
""")
"""The same of files and folders that mean something only where they are."""

ENVIRONMENT_MARK = "pyvenv.cfg"
"""The file that makes a folder a virtual environment, whatever the folder is called."""

INSTALLED_PATHS = _words("""
    node_modules/.bin pyvenv.cfg .venv/* .virtualenv/* .tox/*/* .nox/*/* site-packages/* dist-packages/* venv/bin
    venv/scripts venv/lib virtualenv/bin virtualenv/scripts virtualenv/lib env/bin env/scripts env/lib
""")
"""Programs that were installed, and what interpreters load by themselves (`*.pth`): only installers change them."""

HOOK_DIRECTORIES = frozenset(_words("hooks git-hooks githooks git_hooks template-hooks"))
HOOKS = frozenset(
    _words("""
    applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg
    post-commit pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive post-update
    reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman
    p4-changelist p4-prepare-changelist p4-post-changelist p4-pre-submit post-index-change
""")
)
"""Programs that git runs by their names, in whatever directory the settings name."""

SECRET_DIRECTORIES = _words("""
    .ssh .aws .kube .gnupg .azure .password-store .mozilla .thunderbird .librewolf .1password .oci .envs .electrum
    .bitcoin .ethereum .monero .near-credentials .cloudflared .aliyun .bluemix .ibmcloud .tccli .saml2aws .okta .chef
    .vault.d .git-credential-cache .identityservice .databricks .heroku .fly .ngrok2 .minikube .pki keychains keyrings
    kwalletd kwallet *.opvault *.agilekeychain *.1pif sudoers.d .kaggle .purple .subversion system-connections .irssi
    .snowsql .huggingface .mutt .secrets .credentials application*support .gsutil .jsr .argocd .aws-vault .doppler
    .infisical .akeyless .metamask .replicate .neptune .twilio-cli .stripe .fastly .influxdbv2 .gitlab-runner
    .buildkite-agent dataprotection-keys .continuum
""")
"""Directories of which nothing is read without asking."""

SECRET_FILES = _words("""
    .env .env.* .env-* .env_* *.env .envrc .envrc.* .dev.vars .dev.vars.* .prod.vars local.settings.json .netrc _netrc
    .npmrc .pypirc .git-credentials .gitcookies .pgpass pgpass.conf .my.cnf .mylogin.cnf .cqlshrc .htpasswd htpasswd
    .htdigest .s3cfg .boto .dockercfg .dockerconfigjson .authinfo .msmtprc .fetchmailrc .mbsyncrc .offlineimaprc
    .smbcredentials smbcredentials .databrickscfg .modal.toml .sentryclirc .erlang.cookie .trc .passwd-s3fs .rclone.conf
    rclone.conf .claude.json .ftppass .ftpconfig sftp-config.json .restic-password .borg_passphrase clearml.conf
    kubeconfig kubeconfig.* kubeconfig-* kubeconfig_* *.kubeconfig *-kubeconfig *_kubeconfig *-kubeconfig.y*ml
    *kube_config*.y*ml k3s.yaml rke2.yaml .terraformrc terraform.rc id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk
    id_ed25519_sk id_xmss id_rsa* id_dsa* id_ecdsa* id_ed25519* ssh_host_*_key *_rsa *_dsa *_ecdsa *_ed25519 private_key
    private-key privatekey deploy_key *_deploy_key *private_key.* *private-key.* *privatekey.* *_private.der *.pem *.key
    *.p12 *.pfx *.p8 *.pk8 *.pkcs12 *.pvk *.snk *.jks *.keystore *.bks *.bcfks *.ppk *.jwk *.kdbx *.kdb *.agekey *.gpg
    *.pgp *.sec *secret*.asc *private*.asc *.keytab *.keychain *.keychain-db *.kwallet *.kwl *.psafe3 *.enpassdb *.ovpn
    *.openvpn *.nmconnection wg0.conf wg1.conf wireguard.conf wpa_supplicant.conf *.tfstate *.tfstate.* *.tfvars
    *.tfvars.json .vault-token .vault_token .nomad-token .consul-token .vaultpass .ansible_vault_pass vault_pass
    vault-password-file vault.yml vault.yaml secring.* credentials .credentials .credentials.* aws_credentials
    aws-credentials .aws_credentials .aws-credentials .creds accesskeys.csv *_accesskeys.csv *accesskey.csv rootkey.csv
    accesstokens.json msal_token_cache.* token_cache.* client_secret*.json client-secret*.json service-account*.json
    service_account*.json serviceaccount*.json *firebase-adminsdk*.json gcp-key*.json gcp_key*.json gcloud-key*.json
    gcloud_key*.json google-key*.json sa-key*.json key.json keyfile.json kaggle.json oauth_creds.json publishprofile
    *.publishsettings *.pubxml.user token.json token.pickle *.token .access_token .oauth_token .auth_token .api_token
    .github_token .gh_token .api_key .api-key .apikey *.apikey .secrets .secret .token .password .passwd .pass
    .passphrase .secret_key .secret_key_base keystore.properties key.properties signing.properties .rediscli_auth
    .pip_credentials .yarnrc.yml.secret jupyter_cookie_secret notebook_cookie_secret master.key .*_history fish_history
    .*-history .history .zhistory .histfile .lesshst .viminfo *.shada .dbshell repl_history.jl history.sqlite shadow
    shadow- gshadow gshadow- sudoers master.passwd opasswd smbpasswd ntds.dit krb5cc_* .k5identity chap-secrets
    pap-secrets ipsec.secrets logins.json logins-backup.json key3.db key4.db signons.sqlite cookies.sqlite
    cookies.binarycookies wallet.dat wallet.json *.wallet *.wallet.json default_wallet utc--* ewallet.p12 cwallet.sso
    filezilla.xml sitemanager.xml recentservers.xml winscp.ini credentials-config.json datasources.local.xml *.pkcs8
    *.secret *.secrets *.credentials .mailrc .xauthority .iceauthority .wget-hsts .rdebug_hist debian.cnf
    .hg-credentials .cookies login*data secrets.* secret.* credentials.* *-secrets.* *_secrets.* *.secrets.* secrets-*.*
    passwords.* *_credentials.* *-credentials.* .vault_pass* .vault-pass* .vault_password* wg-*.conf creds.* api_keys.*
    apikeys.* api-keys.* *-secret.y*ml *_key.txt *-key.txt *_token.txt *_secret.txt *_password.txt *-password.txt
    token.txt tokens.txt password.txt passwd.txt passphrase.txt vault_password.txt apikey.txt keys.txt mnemonic.txt
    seed.txt seed*phrase.txt recovery*codes.txt backup*codes.txt cookies.txt consolehost_history.txt *db_password
    *root_password wp-config.php pip.conf pip.ini .condarc .mambarc talosconfig adbkey
    .pause .linode-cli .vultr-cli.yaml .civo.json .pg_service.conf pg_service.conf .mongorc.js .comet.config
    .okta_aws_login_config .edgerc
    pub-credentials.json pub-tokens.json *.credentials.json *.tfrc.json
""")
"""Files that are not read without asking."""

SECRET_PATHS = _words("""
    .docker/config.json .circleci/cli.yml .travis/config.yml .wrangler/config .supabase/access-token
    .netlify/config.json .railway/config.json .vercel/auth.json .now/auth.json .expo/state.json .codex/auth.json
    composer/auth.json .composer/auth.json containers/auth.json opencode/auth.json com.vercel.cli/auth.json
    io.datasette.llm/keys.json huggingface/token huggingface/stored_tokens .cf/config.json .mc/config.json .ngc/config
    .snowflake/connections.toml .dbt/profiles.yml .davfs2/secrets .foundry/keystores .brownie/accounts
    .aptos/config.yaml .dfx/identity solana/id.json sops/age .m2/settings.xml .m2/settings-security.xml
    .gradle/gradle.properties .local/share/keyrings nushell/history.txt atuin/history.db library/cookies
    library/messages library/safari default/cookies .bundle/config .fly/config.yml .nuget/nuget.config
    .rancher/cli2.json etc/kubernetes etc/openvpn etc/rancher etc/ssl/private etc/wireguard run/secrets
    secrets/kubernetes.io etc/npmrc .gem/credentials share/gem/credentials share/uv/credentials .hex/hex.config
    .conda/.condarc .cabal/config .luarocks/upload_config.lua .cpan/cpan/myconfig.pm .pub-cache/credentials.json
    .microsoft/usersecrets .nuget/nuget/nuget.config .dotnet/corefx/cryptography .aspnet/dataprotection-keys
    servers/*/auth.toml .render/cli.yaml .mongodb/mongosh .clickhouse-client/config.xml .cassandra/credentials
    .helm/repository/repositories.yaml .talos/config .puppetlabs/token .openai/auth.json .weechat/sec.conf
    .jupyter/jupyter_server_config.json .jupyter/jupyter_notebook_config.json .vscode/sftp.json .vnc/passwd
    .granted/config .android/adbkey .npm-global/etc/npmrc
""")
"""Files and folders that are not read without asking where they are."""

SHOWN_OF_HOME = _words("""
    .local/bin .local/lib .local/pipx .local/share/pipx .local/share/uv/python .local/share/uv/tools .local/share/mise
    .local/share/rtx .local/share/fnm .local/share/pnpm .local/share/virtualenvs .local/share/hatch .virtualenvs
    .local/share/nvim/mason .cache/pypoetry/virtualenvs .cache/ms-playwright .cache/puppeteer .cache/pre-commit .pyenv
    .rye/self .rye/shims .rye/py .rye/tools .asdf .rbenv .rvm .nodenv .goenv .jenv .sdkman/candidates .ghcup/bin
    .ghcup/ghc .nix-profile .volta .nvm .bun/bin .bun/install .deno/bin .yarn/bin .npm-global/bin .npm-global/lib
    .npm-packages/bin .npm-packages/lib .cargo/bin .cargo/env .cargo/registry .cargo/git .rustup go/bin go/pkg sdk .go
    .dotnet/dotnet .dotnet/host .dotnet/sdk .dotnet/shared .dotnet/packs .dotnet/tools .dotnet/templates .jdks
    .m2/repository .gradle/caches .gradle/wrapper .gem/ruby .local/share/gem/ruby .bundle/cache .julia/packages
    .julia/juliaup .juliaup .elan .opam .cabal/bin .cabal/packages .stack/programs .stack/snapshots .miniconda3
    miniconda3 anaconda3 mambaforge miniforge3 .conda/envs .conda/pkgs micromamba .flutter .pub-cache/bin
    .pub-cache/hosted .pub-cache/git .pub-cache/global_packages .android/sdk Android/Sdk .linuxbrew .config/git/ignore
    .config/git/attributes .gitignore .gitignore_global
""")
"""Places in the home directory that commands may read, where they exist: programs, and packages that they use."""

SECRETS_IN_SHOWN = _words("""
    etc/npmrc etc/.npmrc lib/node_modules/npm/npmrc versions/node/*/etc/npmrc versions/*/etc/npmrc
    installs/node/*/etc/npmrc installs/nodejs/*/etc/npmrc node-versions/*/installation/etc/npmrc
    tools/image/node/*/etc/npmrc envs/*/.condarc envs/*/pip.conf envs/*/etc/npmrc versions/*/pip.conf */pip.conf
    venvs/*/pip.conf etc/conda/.condarc .conda/.condarc
""")
"""Where credentials lie deeper in such a place; `*` is one name. At its top each is known by its own name."""

PROJECT_SCRIPTS = frozenset(
    _words("""
    makefile gnumakefile package.json setup.py setup.cfg pyproject.toml conftest.py noxfile.py tox.ini cmakelists.txt
    build.gradle build.gradle.kts pom.xml build.rs rakefile gemfile justfile dockerfile
""")
)
"""Files of a project that everyday commands run or load; they can be changed, and are shown first."""
