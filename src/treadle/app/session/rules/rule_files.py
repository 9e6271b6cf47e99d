"""The rules for the model in a trusted folder and in the user's own folders: which there are, and when each applies."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.config.places import config_file
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.rule_globs import globs_fit, is_everything, negation_note, reading_of
from treadle.context.frontmatter import Header, braces, read_header
from treadle.context.imports import import_paths
from treadle.context.system import Rules
from treadle.store.activation import ActiveFile, ActiveKind, active_kind
from treadle.store.active_items import import_target, listed_item, may_import, named_from, read_item, repository_of
from treadle.store.nested_rules import held_rules

LONGEST_RULES = 32_768
"""Characters of one file that are used."""

MOST_OF_ALL_RULES = 131_072
"""Characters of all rules that go along with every request."""

_MOST_BLOCKS = 32
_MOST_GLOBS = 200
_OVERRIDE, _GENERAL = "agents.override.md", "agents.md"
_NEIGHBOURS = (_OVERRIDE, _GENERAL, "claude.md", "claude.local.md", "gemini.md")
"""Files of one folder for several programs, in the order in which they are sent; each is read."""

_MOST_FILES = 500


class RuleUse(StrEnum):
    """When a rule applies."""

    ALWAYS = "always"
    TOUCHED = "touched"
    DESCRIBED = "described"
    MENTIONED = "mentioned"


class PromptRule(Struct, frozen=True, kw_only=True):
    """One rule, with the files that it imports. `folder` is what its `paths` and the rule itself are about.

    `problem` says what of it is not used, `unused` why it does not apply at all.
    """

    origin: str
    use: RuleUse
    folder: str
    blocks: tuple[Rules, ...] = ()
    paths: tuple[str, ...] = ()
    description: str = ""
    problem: str = ""
    unused: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which a user may mention it: that of its file with and without the ending, and its path."""
        name = self.origin.rpartition("/")[2]
        return (name.rpartition(".")[0] or name, name, self.origin)

    @property
    def size(self) -> int:
        """Its length in characters."""
        return sum(len(block.text) for block in self.blocks)

    def applies_to(self, path: str) -> bool:
        """Whether it is about a file or folder, by its absolute path."""
        if not path.startswith(f"{self.folder.rstrip('/')}/"):
            return False
        parts = path[len(self.folder.rstrip("/")) + 1 :].split("/")
        return globs_fit(self.paths, parts, reading_of(self.origin))


def find_rules(trust: SessionTrust) -> tuple[PromptRule, ...]:
    """Read the user's own rules, and the folder's that are in force: as they were trusted or approved."""
    found = [*_users_rules(trust.workspace), *_folder_rules(trust.workspace, trust.rules)]
    return tuple(_bounded(_without_copies(found)))


def nested_rules(trust: SessionTrust, folder: Path) -> Iterator[PromptRule]:
    """Read the rules that are in a folder below the workspace, as they were trusted."""
    if not trust.trusted:
        return
    known = {item.path: item for item in trust.trust.nested}
    found: list[PromptRule] = []
    for path in _nested_names(folder):
        name = os.path.relpath(path, trust.workspace)
        rule_item = listed_item(trust.workspace, name, ActiveKind.RULES) if trust.once else known.get(name)
        if rule_item is None:
            why = "It was not there when you trusted the folder."
            found.append(PromptRule(origin=name, use=RuleUse.TOUCHED, folder=str(folder), unused=why))
        else:
            rule = _Reading(trust.workspace, trust.trust.nested, pinned=not trust.once).rule(rule_item)
            use = rule.use if rule.use is RuleUse.MENTIONED else RuleUse.TOUCHED
            found.append(replace(rule, use=use, folder=str(folder)))
    yield from _without_repeats(trust.workspace, found)


def _nested_names(folder: Path) -> Sequence[Path]:
    try:
        names = {name.casefold(): name for name in os.listdir(folder)}  # noqa: PTH208 - names suffice
    except OSError:
        return ()
    held = held_rules(folder) if ".claude" in names or ".cursor" in names else ()
    return [folder / one for one in (*(names[name] for name in _NEIGHBOURS if name in names), *held)]


def _users_rules(workspace: Path) -> Iterator[PromptRule]:
    """Read the user's own rules, which need no trust; their `paths` are those of the workspace."""
    folder = config_file().parent
    files = [folder / "AGENTS.md", *islice(sorted((folder / "rules").glob("**/*.md")), _MOST_FILES)]
    for file in files:
        if os.path.lexists(file):
            item = listed_item(folder, str(file), ActiveKind.RULES)
            yield read_rule(str(file), read_item(folder, item), folder=str(workspace))


def _folder_rules(workspace: Path, items: Sequence[ActiveFile]) -> Iterator[PromptRule]:
    """Put the rules of a folder in order: the outermost folder first, in each the general files before the others."""
    reading = _Reading(workspace, items)
    own = [(place, item) for item in items if (place := _place(workspace, item.path)) is not None]
    own.sort(key=lambda one: (len(one[0].parts), "/." in f"/{one[1].path}", one[1].path))
    yield from _without_repeats(workspace, [reading.rule(item) for _, item in own])


def _place(workspace: Path, path: str) -> Path | None:
    """Say in which folder a listed file gives rules, the workspace or one above it; None for one that is imported."""
    file = workspace / path
    for folder in (workspace, *workspace.parents):
        if file.is_relative_to(folder) and active_kind(str(file.relative_to(folder))) is ActiveKind.RULES:
            return folder
    return None


def _without_repeats(workspace: Path, rules: Sequence[PromptRule]) -> Iterator[PromptRule]:
    """Leave out what another rule says: a file that is replaced, a link to a rule, an import of one, a copy."""
    overridden = {os.path.split(rule.origin)[0] for rule in rules if rule.blocks and _is_named(rule, _OVERRIDE)}
    used: dict[str, str] = {}
    texts: dict[str, str] = {}
    for rule in rules:
        if _is_named(rule, _GENERAL) and os.path.split(rule.origin)[0] in overridden:
            yield replace(rule, unused="AGENTS.override.md beside it is used.")
            continue
        if not rule.blocks or rule.unused or rule.use not in (RuleUse.ALWAYS, RuleUse.TOUCHED) or rule.paths:
            yield rule
            continue
        own = {os.path.realpath(workspace / block.origin): block for block in rule.blocks}
        known = [used[file] for file in own if file in used]
        kept = tuple(block for file, block in own.items() if file not in used)
        only_imports = bool(known) and not _without_imports(rule.blocks[0].text)
        if os.path.realpath(workspace / rule.origin) in used:
            yield replace(rule, unused=f"It is the same file as {known[0]}.")
        elif only_imports and len(kept) <= 1:
            yield replace(rule, unused=f"It only imports {known[0]}, which is used.")
        elif not rule.blocks[1:] and (same := texts.get(rule.blocks[0].text)):
            yield replace(rule, unused=f"It has the same text as {same}.")
        else:
            used.update(dict.fromkeys(own, rule.origin))
            texts.setdefault(rule.blocks[0].text, rule.origin)
            yield replace(rule, blocks=kept)


def _is_named(rule: PromptRule, name: str) -> bool:
    return os.path.split(rule.origin)[1].casefold() == name


def _without_imports(text: str) -> str:
    """Give what a text says besides naming the files that it imports."""
    for path in import_paths(text):
        text = text.replace(f"@{path}", "")
    return text.strip()


class _Reading:
    """Reads rules of a folder; with `pinned`, only files with the digests of `items`."""

    def __init__(self, workspace: Path, items: Iterable[ActiveFile], *, pinned: bool = True) -> None:
        self._workspace = workspace
        self._items: Mapping[str, ActiveFile] = {item.path: item for item in items}
        self._top = repository_of(workspace) or workspace
        self._pinned = pinned

    def rule(self, item: ActiveFile) -> PromptRule:
        """Read a rule with what it imports."""
        place = _place(self._workspace, item.path) or (self._workspace / item.path).parent
        if not self._is_inside(item.path):
            return PromptRule(
                origin=item.path, use=RuleUse.ALWAYS, folder=str(place), unused="It leads out of the folder."
            )
        found = read_rule(item.path, self._read(item), folder=str(place))
        if not found.blocks:
            return found
        blocks, problems = list(found.blocks), [found.problem]
        for path in self.imports(item):
            text, problem = rule_text(self._read(self._item(path)))
            blocks += [Rules(origin=path, text=text)] if text else []
            problems += [f"{path}: {problem}"] if problem else []
        problems += [f"{path} is protected or outside, and not imported." for path in self._refused(item)]
        return replace(found, blocks=tuple(blocks), problem=" ".join(filter(None, problems)))

    def imports(self, item: ActiveFile) -> list[str]:
        """Name the files that a rule imports, and those that these import, each once."""
        found: list[str] = []
        waiting = [item.path] if may_import(item.path) else []
        while waiting and len(found) < _MOST_BLOCKS:
            one = self._item(waiting.pop(0))
            text, _ = rule_text(self._read(one))
            files = (import_target(self._workspace, one, path) for path in import_paths(text))
            names = [named_from(self._workspace, file) for file in files if file is not None]
            new = [name for name in dict.fromkeys(names) if name not in (item.path, *found)]
            found += [name for name in new if name in self._items or not self._pinned]
            waiting += new
        return found[:_MOST_BLOCKS]

    def _refused(self, item: ActiveFile) -> Iterator[str]:
        """Name the files that a rule would import, and may not."""
        if not may_import(item.path):
            return
        text, _ = rule_text(self._read(item))
        for path in import_paths(text):
            file = (self._workspace / item.path).parent / os.path.expanduser(path)  # noqa: PTH111
            if file.is_file() and import_target(self._workspace, item, path) is None:
                yield path

    def _item(self, path: str) -> ActiveFile:
        known = self._items.get(path)
        return listed_item(self._workspace, path, ActiveKind.RULES) if known is None else known

    def _is_inside(self, path: str) -> bool:
        return Path(os.path.realpath(self._workspace / path)).is_relative_to(self._top)

    def _read(self, item: ActiveFile) -> bytes | None:
        allowed = item.path in self._items or not self._pinned
        return read_item(self._workspace, item) if allowed and self._is_inside(item.path) else None


def read_rule(origin: str, content: bytes | None, *, folder: str) -> PromptRule:
    """Read a rule from the bytes of its file; its name says what the header means. None: it cannot be read."""
    text, problem = rule_text(content)
    if not text.strip():
        why = problem or "It is empty."
        return PromptRule(origin=origin, use=RuleUse.ALWAYS, folder=folder, unused=why)
    header = read_header(text) if _has_header(origin) else Header(values={}, body=text)
    key, reading = _glob_key(origin, header), reading_of(origin)
    globs = header.listed(key) if header.values.get(key) != "" else None
    use = _use(origin, header, globs)
    unused = "" if header.body.strip() else "It has a header and no text."
    if use is RuleUse.TOUCHED and globs == () and "/.clinerules/" in f"/{origin}":
        unused = unused or "The list of its paths is empty, so it applies to nothing."
    if len(globs or ()) > _MOST_GLOBS:
        problem = problem or f"Only the first {_MOST_GLOBS} of its globs are used."
    paths = (globs or ())[:_MOST_GLOBS] if use is RuleUse.TOUCHED else ()
    return PromptRule(
        origin=origin,
        use=RuleUse.ALWAYS if use is RuleUse.TOUCHED and is_everything(paths, reading) else use,
        folder=folder,
        blocks=(Rules(origin=origin, text=header.body.strip()),),
        # What is taken out keeps its braces: it is none of the alternatives.
        paths=tuple(
            one for glob in paths for one in ((glob,) if glob.startswith("!") else braces(glob.removeprefix("./")))
        ),
        description=" ".join(header.text("description").split())[:1_024],
        problem=" ".join(filter(None, (header.problem or problem, negation_note(paths, reading)))),
        unused=unused,
    )


def _has_header(origin: str) -> bool:
    return any(place in f"/{origin}" for place in ("/rules/", "/.clinerules/", "/.github/instructions/"))


def _glob_key(origin: str, header: Header) -> str:
    """Name the entry with the globs; that of another program is taken where the own one is missing."""
    path = f"/{origin}"
    own = "applyTo" if "/.github/" in path else "globs" if _is_mode_rule(origin) or "/.windsurf/" in path else "paths"
    return next((key for key in (own, "globs", "paths", "applyTo") if key in header.values), own)


def _is_mode_rule(origin: str) -> bool:
    """Whether the header of a rule says its mode as Cursor's do."""
    return "/.cursor/" in f"/{origin}" or (origin.endswith(".mdc") and "/.clinerules/" not in f"/{origin}")


def _use(origin: str, header: Header, globs: tuple[str, ...] | None) -> RuleUse:
    """Say when a rule applies, by the header that the tool it was written for reads."""
    if _is_mode_rule(origin) and (origin.endswith(".mdc") or header.values):
        if header.truth("alwaysApply"):
            return RuleUse.ALWAYS
        if globs:
            return RuleUse.TOUCHED
        return RuleUse.DESCRIBED if header.text("description") else RuleUse.MENTIONED
    if "/.github/instructions/" in f"/{origin}" and not globs:
        return RuleUse.DESCRIBED
    is_empty = not globs and not (globs == () and "/.clinerules/" in f"/{origin}")
    usual = RuleUse.ALWAYS if is_empty else RuleUse.TOUCHED
    return _TRIGGERS.get(header.text("trigger"), usual)


_TRIGGERS: Mapping[str, RuleUse] = {
    "always_on": RuleUse.ALWAYS,
    "glob": RuleUse.TOUCHED,
    "model_decision": RuleUse.DESCRIBED,
    "manual": RuleUse.MENTIONED,
}


def rule_text(content: bytes | None) -> tuple[str, str]:
    """Decode a file, and say what of it is not used."""
    if content is None:
        return "", "It cannot be read, or is not as it was when you trusted the folder."
    start = content[: 4 * LONGEST_RULES + 4]
    if b"\0" in start:
        return "", "It is not text in UTF-8."
    try:
        text, problem = content.decode("utf-8-sig"), ""
    except UnicodeDecodeError:
        text, problem = start.decode("utf-8-sig", errors="replace"), "It is not UTF-8: what cannot be read is replaced."
    if len(text) > LONGEST_RULES:
        cut = f"{text[:LONGEST_RULES]}\n[cut after {LONGEST_RULES} characters]"
        return cut, f"Only its first {LONGEST_RULES:,} characters are used."
    return text, problem


def _without_copies(rules: Iterable[PromptRule]) -> Iterator[PromptRule]:
    """Let of rules with the same text only the first one apply."""
    seen: dict[tuple[str, ...], str] = {}
    for rule in rules:
        texts = tuple(block.text for block in rule.blocks)
        if rule.unused or rule.use is not RuleUse.ALWAYS:
            yield rule
        elif texts in seen:
            yield replace(rule, unused=f"It has the same text as {seen[texts]}.")
        else:
            seen[texts] = rule.origin
            yield rule


def _bounded(rules: Iterable[PromptRule]) -> Iterator[PromptRule]:
    left = MOST_OF_ALL_RULES
    for rule in rules:
        if rule.use is not RuleUse.ALWAYS or rule.unused:
            yield rule
        elif rule.size > left:
            yield replace(rule, unused=f"All rules together are longer than {MOST_OF_ALL_RULES:,} characters.")
        else:
            left -= rule.size
            yield rule
