"""Size and style of the source: lines, files, import cycles, assertions on wording, idiom.

    python benchmarks/size.py [ROOT] [--json]

Reads source files only and imports nothing of the package. Sizes are those of ``engine``,
``kernels`` and ``schemas``. The column "c6d5482c" has the figures of that commit, the column "gate"
the limits to reach.
"""

from __future__ import annotations

import argparse
import ast
import gc
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

SOURCE = ("engine", "kernels", "schemas")
PACKAGES = {"engine": "", "kernels": "kernels.", "schemas": "schemas."}
"""Folder -> prefix of its modules within the import package."""

SMALL = 80
"""Lines below which a file counts as small."""

WORDS = 4
"""Words from which a literal counts as wording."""

IDIOM = {
    "what, as a noun": r"\bwhat\b",
    "where, for if or when": r"(?<![-`'\"])\bwhere\b(?![=`'\"])",
    "tell, told, say, said": r"\b(?:tells?|told|says?|said)\b",
    "stand, stands": r"\b(?:stands?|stood)\b",
    "hold, held": r"\b(?:holds?|held)\b(?![- ]out)",
    "nothing, nobody, none of": r"\b(?:nothing|nobody|none of)\b",
    "its own, as a noun": r"\b(?:its|their|of) own\b(?! [a-z]+\b(?<!and)(?<!or)(?<!is)(?<!are))",
    "leave, left": r"\bleav(?:es?|ing)\b|\b(?:is|are|was|were|be|been) left\b"
    r"|\bleft (?:out|over|behind|open|to|with|at|in)\b",
    "beside": r"\bbeside\b",
    "alone, for only": r"\balone\b",
    "lie, lies": r"\b(?:lies?|lay)\b",
    "meet": r"\b(?:meets?|met|meeting)\b",
    "apart, likewise, walk": r"\b(?:apart|likewise|walk(?:s|ed|ing)?)\b",
    "sentence that begins with Of": r"(?:\A|[.!?]\s+|\n\n\s*)Of [a-z`]",
    "inverted: needed is, is it": r"\b(?:needed|wanted|asked|given) (?:is|are)\b|\bis it\b",
    "lack": r"\black(?:s|ed|ing)?\b",
    "draw, for resample": r"(?<![-`'\"])\bdraw(?:s|n|ing)?\b(?![=`'\"])",
}
"""Words that the style avoids -> pattern. Counted without case; a few right uses are included."""

_IDIOM = {
    name: re.compile(pattern, re.I if "Of" not in name else 0) for name, pattern in IDIOM.items()
}
_OPENING = re.compile(r"(What|Whether|Where|Which|How|Those|Of)\b")
_FORMAT = re.compile(r"#\s*fmt:\s*(?:skip|off)\b")
_TOKENS = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*")


@dataclass
class Module:
    """One source file, parsed.

    Attributes:
        path: where it is, relative to the root.
        text: its content.
    """

    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the tree."""
        return list(ast.walk(self.tree))

    @cached_property
    def docstrings(self) -> list[ast.Constant]:
        """Literals that are statements: docstrings, also those of attributes."""
        return [
            node.value
            for node in self.nodes
            if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ]

    def literals(self) -> list[str]:
        """Strings with a blank in them that are no docstrings."""
        own = {id(node) for node in self.docstrings}
        return [
            node.value
            for node in self.nodes
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and " " in node.value
            and id(node) not in own
        ]

    def comments(self) -> list[str]:
        """Comments, without the hash."""
        spans = defaultdict[int, list[tuple[int, int]]](list)
        for node in self.nodes:
            if isinstance(node, ast.JoinedStr) or (
                isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
            ):
                last = node.end_lineno or node.lineno
                for line in range(node.lineno, last + 1):
                    start = node.col_offset if line == node.lineno else 0
                    end = node.end_col_offset or 0 if line == last else 10**6
                    spans[line].append((start, end))
        comments = []
        for number, line in enumerate(self.text.split("\n"), 1):
            place = line.find("#")
            while place >= 0:
                column = len(line[:place].encode())
                inside = [end for start, end in spans[number] if start <= column < end]
                if not inside:
                    comments.append(line[place + 1 :].strip())
                    break
                place = line.find("#", place + 1)
        return comments


@dataclass
class Imports:
    """Modules that each module imports, by the kind of the import statement."""

    top: dict[str, set[str]] = field(default_factory=dict)
    lazy: dict[str, set[str]] = field(default_factory=dict)
    typed: dict[str, set[str]] = field(default_factory=dict)


def read(root: Path, folders: Iterable[str]) -> list[Module]:
    """Read the Python files of folders, in the order of their paths."""
    return [
        Module(path.relative_to(root), path.read_text("utf-8"))
        for folder in folders
        for path in sorted((root / folder).rglob("*.py"))
        if not any(part.startswith(".") for part in path.relative_to(root).parts)
    ]


def module_name(path: Path) -> str:
    """Name of a module within the package: "tally.parts", "" for the package itself."""
    parts = [*PACKAGES[path.parts[0]].split("."), *path.with_suffix("").parts[1:]]
    return ".".join(part for part in parts if part and part != "__init__")


def _is_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and _name(node.test) == "TYPE_CHECKING"


def _name(node: ast.AST | None) -> str:
    """Return the last part of a name, or of the name that is called or subscripted."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return str(getattr(node, "attr", getattr(node, "id", "")))


def imports_of(modules: list[Module]) -> Imports:
    """Graph of the imports within the package."""
    names = {module_name(module.path) for module in modules}
    graph = Imports()
    for module in modules:
        own = module_name(module.path)
        package = own if module.path.name == "__init__.py" else own.rpartition(".")[0]
        for kind in (graph.top, graph.lazy, graph.typed):
            kind[own] = set()
        waiting: list[tuple[ast.AST, dict[str, set[str]]]] = [(module.tree, graph.top)]
        while waiting:
            node, kind = waiting.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                kind = graph.lazy
            if isinstance(node, ast.ImportFrom):
                kind[own] |= set(_imported(node, package, names)) - {own}
            elif isinstance(node, ast.Import):
                inside = {a.name.partition(".")[2] for a in node.names if "evalengine." in a.name}
                kind[own] |= (inside & names) - {own}
            elif _is_typing(node):
                assert isinstance(node, ast.If)
                waiting += [(child, graph.typed) for child in node.body]
                waiting += [(child, kind) for child in node.orelse]
            elif isinstance(node, ast.stmt | ast.Module | ast.excepthandler | ast.match_case):
                waiting += [(child, kind) for child in ast.iter_child_nodes(node)]
    return graph


def _imported(node: ast.ImportFrom, package: str, names: set[str]) -> Iterator[str]:
    if node.level:
        parts = package.split(".") if package else []
        parts = parts[: len(parts) - node.level + 1]
    elif (node.module or "").partition(".")[0] == "evalengine":
        parts = []
    else:
        return
    within = (node.module or "") if node.level else (node.module or "").partition(".")[2]
    base = ".".join([*parts, *([within] if within else [])])
    for alias in node.names:
        inner = f"{base}.{alias.name}" if base else alias.name
        if inner in names:
            yield inner
        elif base in names:
            yield base


def cycles(*graphs: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other, directly or not (Tarjan's components)."""
    merged = {name: sorted(set().union(*(graph[name] for graph in graphs))) for name in graphs[0]}
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups = []
    for root in merged:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        path = [(root, iter(merged[root]))]
        while path:
            name, targets = path[-1]
            target = next(targets, None)
            if target is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[name])
                if low[name] == index[name]:
                    group = []
                    while not group or group[-1] != name:
                        group.append(stack.pop())
                        low[group[-1]] = 10**9
                    if len(group) > 1:
                        groups.append(sorted(group))
            elif target not in index:
                index[target] = low[target] = len(index)
                stack.append(target)
                path.append((target, iter(merged[target])))
            else:
                low[name] = min(low[name], low[target])
    return groups


def openings(module: Module) -> int:
    """Count docstrings of modules, classes and functions that begin with a word to avoid."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    texts = (ast.get_docstring(node) for node in module.nodes if isinstance(node, kinds))
    return sum(text is not None and _OPENING.match(text) is not None for text in texts)


def view_classes(modules: list[Module]) -> list[str]:
    """Classes of views, resamples and tallies in parts: by a token of their name."""
    kinds = {"View", "Draws", "Parts"}
    return sorted(name for name in _classes(modules) if kinds & set(_tokens(name)))


def pairs(modules: list[Module]) -> list[tuple[str, str]]:
    """Classes "in files" next to their twins "in memory".

    A class in files has the token ``Parts`` in its name. Its twin is a base class of the package
    without that token; otherwise, a class with the same other tokens, where View, Draws, Of and the
    plural do not count.
    """
    classes = _classes(modules)
    matches = []
    for name, bases in classes.items():
        if "Parts" not in _tokens(name):
            continue
        stem = _stem(name)
        own = [base for base in bases if base in classes and "Parts" not in _tokens(base)]
        same = [
            other
            for other in classes
            if stem and other != name and "Parts" not in _tokens(other) and _stem(other) == stem
        ]
        if own or same:
            matches.append((name, (own or same)[0]))
    return sorted(matches)


def _tokens(name: str) -> list[str]:
    return _TOKENS.findall(name)


def _stem(name: str) -> tuple[str, ...]:
    ignored = {"Parts", "View", "Draws", "Of", "In"}
    return tuple(token.rstrip("s") for token in _tokens(name) if token not in ignored)


def _classes(modules: list[Module]) -> dict[str, list[str]]:
    return {
        node.name: [_name(base) for base in node.bases]
        for module in modules
        if module.path.parts[0] == "engine"
        for node in module.nodes
        if isinstance(node, ast.ClassDef)
    }


def wording(module: Module) -> dict[str, int]:
    """Count the assertions on wording of a test file.

    An assertion on wording compares (``==``, ``in``, ``re.search``, ``startswith`` and the like)
    something with a literal of four or more words, or gives it to pytest's ``match=``. The name of
    what is compared does not matter, so that renaming a variable changes no figure. A case of
    ``parametrize`` counts if its parameter is compared so.
    """
    single = cases = 0
    for node in module.nodes:
        if isinstance(node, ast.Call | ast.Compare):
            single += sum(map(_is_long, _compared(node)))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.decorator_list:
            cases += _cases(node)
    return {"single": single, "cases of parametrize": cases}


_SEARCHES = frozenset({"search", "match", "fullmatch", "startswith", "endswith", "count", "index"})
_WORD = re.compile(r"[A-Za-z]{2,}|\ba\b")


def _compared(node: ast.AST) -> Iterator[ast.expr]:
    """Sides of a comparison, items of their lists included."""
    sides: list[ast.expr] = []
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
    elif isinstance(node, ast.Call):
        sides = [keyword.value for keyword in node.keywords if keyword.arg == "match"]
        if isinstance(node.func, ast.Attribute) and node.func.attr in _SEARCHES:
            sides += [node.func.value, *node.args]
    for side in sides:
        if isinstance(side, ast.List | ast.Tuple | ast.Set):
            yield from side.elts
        elif isinstance(side, ast.Call) and side.args:  # re.escape("...")
            yield side.args[0]
        else:
            yield side


def _is_long(node: ast.AST) -> bool:
    if isinstance(node, ast.JoinedStr):
        text = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = node.value
    else:
        return False
    return len(_WORD.findall(text)) >= WORDS


def _cases(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    compared = {
        side.id
        for node in ast.walk(function)
        for side in _compared(node)
        if isinstance(side, ast.Name)
    }
    count = 0
    for decorator in function.decorator_list:
        if not (isinstance(decorator, ast.Call) and len(decorator.args) > 1):
            continue
        names, cases = decorator.args[:2]
        if isinstance(names, ast.Constant):
            parameters = [name.strip() for name in str(names.value).split(",")]
        else:
            parameters = [str(getattr(item, "value", "")) for item in getattr(names, "elts", [])]
        for case in getattr(cases, "elts", []):
            values = case.args if isinstance(case, ast.Call) else getattr(case, "elts", [])
            values = [case] if len(parameters) == 1 and not isinstance(case, ast.Call) else values
            pairs = zip(parameters, values, strict=False)
            count += sum(name in compared and _is_long(value) for name, value in pairs)
    return count


def idiom(texts: dict[str, list[str]]) -> dict[str, dict[str, int]]:
    """Count the words of :data:`IDIOM` in each kind of text."""
    joined = {kind: "\n\n".join(parts) for kind, parts in texts.items()}
    return {
        name: {kind: len(pattern.findall(text)) for kind, text in joined.items()}
        for name, pattern in _IDIOM.items()
    }


def pages(root: Path) -> list[str]:
    """Texts of the documentation, code blocks and the changelog left aside."""
    paths = [*sorted((root / "docs").rglob("*.md")), root / "README.md", root / "CONTRIBUTING.md"]
    texts = [path.read_text("utf-8") for path in paths if path.exists()]
    return [re.sub(r"^```.*?^```", "", text, flags=re.S | re.M) for text in texts]


def measure(root: Path) -> dict[str, int | dict[str, int]]:
    """Measure a tree; a mapping of figure to count, of idiom to counts by kind of text."""
    source = read(root, SOURCE)
    tests = read(root, ["tests"])
    docstrings = [node for module in source for node in module.docstrings]
    comments = [text for module in source for text in module.comments()]
    literals = [text for module in source for text in module.literals()]
    graph = imports_of(source)
    lengths = {module.path: len(module.text.splitlines()) for module in source}
    small = [p for p, n in lengths.items() if n < SMALL and p.name != "__init__.py"]
    statements = sum(isinstance(node, ast.stmt) for module in source for node in module.nodes)
    top, lazy, both = (
        cycles(graph.top),
        cycles(graph.top, graph.lazy),
        cycles(*vars(graph).values()),
    )
    figures: dict[str, int | dict[str, int]] = {
        "files": len(source),
        "lines": sum(lengths.values()),
        "AST statements": statements,
        f"files under {SMALL} lines": len(small),
        "fmt: skip, fmt: off": sum(len(_FORMAT.findall(module.text)) for module in source),
        "import cycles, top-level imports": len(top),
        "import cycles, with lazy imports": len(lazy),
        "modules in cycles, with lazy imports": sum(map(len, lazy)),
        "import cycles, with TYPE_CHECKING imports": len(cycles(graph.top, graph.typed)),
        "modules in cycles, all imports": sum(map(len, both)),
        "TYPE_CHECKING blocks": sum(_is_typing(n) for module in source for n in module.nodes),
        "classes of views, resamples and parts": len(view_classes(source)),
        "class pairs in memory / in files": len(pairs(source)),
        "raise OneByOne": sum(
            isinstance(node, ast.Raise) and _name(node.exc) == "OneByOne"
            for module in source
            for node in module.nodes
        ),
        "docstrings that begin with What, Whether, ...": sum(map(openings, source)),
        "assertions on wording in tests": dict(sum(map(Counter, map(wording, tests)), Counter())),
    }
    words = idiom(
        {
            "docstrings": [str(node.value) for node in docstrings],
            "comments": comments,
            "strings": literals,
            "docs": pages(root),
        }
    )
    total = Counter[str]()
    for counts in words.values():
        total.update(counts)
    figures["idiom, all"] = dict(total)
    return {**figures, **{f"idiom: {name}": counts for name, counts in words.items()}}


def _sum(value: int | dict[str, int]) -> int:
    return value if isinstance(value, int) else sum(value.values())


def table(figures: dict[str, int | dict[str, int]]) -> str:
    """A Markdown table of the figures, those of c6d5482c and the gates."""
    lines = ["| figure | c6d5482c | now | gate |", "|---|---:|---:|---:|"]
    for name, value in figures.items():
        before = BEFORE.get(name)
        gate = before // 5 if name == "idiom, all" and before else GATES.get(name)
        cells = [f"{n:,}" if n is not None else "" for n in (before, _sum(value), gate)]
        rest = ""
        if isinstance(value, dict):
            rest = " (" + ", ".join(f"{count:,} {kind}" for kind, count in value.items()) + ")"
        lines.append(f"| {name}{rest} | {' | '.join(cells)} |")
    return "\n".join(lines)


BEFORE = {
    "files": 915,
    "lines": 135_244,
    "AST statements": 70_338,
    "files under 80 lines": 231,
    "fmt: skip, fmt: off": 328,
    "import cycles, top-level imports": 0,
    "import cycles, with lazy imports": 0,
    "modules in cycles, with lazy imports": 0,
    "import cycles, with TYPE_CHECKING imports": 5,
    "modules in cycles, all imports": 61,
    "TYPE_CHECKING blocks": 135,
    "classes of views, resamples and parts": 30,
    "class pairs in memory / in files": 7,
    "raise OneByOne": 25,
    "docstrings that begin with What, Whether, ...": 1_034,
    "assertions on wording in tests": 1_521,
    "idiom, all": 11_201,
    "idiom: what, as a noun": 2_842,
    "idiom: where, for if or when": 2_167,
    "idiom: tell, told, say, said": 1_164,
    "idiom: stand, stands": 526,
    "idiom: hold, held": 710,
    "idiom: nothing, nobody, none of": 799,
    "idiom: its own, as a noun": 178,
    "idiom: leave, left": 603,
    "idiom: beside": 308,
    "idiom: alone, for only": 330,
    "idiom: lie, lies": 233,
    "idiom: meet": 213,
    "idiom: apart, likewise, walk": 272,
    "idiom: sentence that begins with Of": 115,
    "idiom: inverted: needed is, is it": 35,
    "idiom: lack": 148,
    "idiom: draw, for resample": 558,
}
"""Figures of c6d5482c by these rules."""

GATES = {
    "files": 400,
    "lines": 120_000,
    "AST statements": 66_000,
    f"files under {SMALL} lines": 50,
    "fmt: skip, fmt: off": 0,
    "import cycles, top-level imports": 0,
    "import cycles, with lazy imports": 0,
    "TYPE_CHECKING blocks": 40,
    "docstrings that begin with What, Whether, ...": 80,
    "assertions on wording in tests": 300,
}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args()
    gc.disable()  # millions of nodes, all of which remain
    figures = measure(given.root)
    print(json.dumps(figures, indent=2) if given.json else table(figures))


if __name__ == "__main__":
    main()
