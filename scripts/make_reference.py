"""Write docs/reference.md and docs/reference/: every public name with its signature, its docstring and its members."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ForwardRef

import sfumato

DOCS = Path(__file__).parents[1] / "docs"
INDEX = DOCS / "reference.md"

HEAD = """# Reference

Every public name of the package, with its signature, its docstring and, for a class, its properties and methods.
Written by `scripts/make_reference.py` from the code; a test fails when a page is out of date, or when a name, a method
or a parameter is not documented. What stands here without a module is in the root: `import sfumato as sf`, then
`sf.estimate`. Commands have [a page of their own](cli.md), and so has [the collector's HTTP](collector.md)."""

#: A signature longer than this has one parameter a line.
WIDTH = 110


@dataclass(frozen=True)
class Theme:
    """A page: the public names that the modules ``homes`` define. The longest home decides."""

    page: str
    title: str
    about: str
    homes: tuple[str, ...]


THEMES = (
    Theme(
        "policies",
        "Values and policies",
        "What can be answered, and which answers must be hard to tell apart. "
        "[Saying what is sensitive](../context-aware.md) explains the kinds of policy.",
        ("_core", "domain", "policy"),
    ),
    Theme(
        "mechanisms",
        "Mechanisms",
        "Exact randomizers of one value. `design` makes the right one; whoever wants a certain one makes it here. "
        "Each has [its proof](../proofs/README.md).",
        ("mechanisms",),
    ),
    Theme(
        "choosing",
        "Choosing a mechanism",
        "The error to expect of each mechanism, the one with the least, and the least that any can have. "
        "[How to choose](../how-to/choose-a-mechanism.md).",
        ("compiler",),
    ),
    Theme(
        "randomizing",
        "Randomizing",
        "What runs where the values are: [on the device](../how-to/on-the-device.md), with what one person "
        "[has spent](../ledger.md).",
        ("device", "randomness"),
    ),
    Theme(
        "collecting",
        "Collecting and counting",
        "Reports in files, on a cluster and on their way to [a collector](../collector.md), and their exact counts.",
        ("collecting", "device.client", "device.transport", "mechanisms.reports", "spark"),
    ),
    Theme(
        "estimating",
        "Estimating",
        "Frequencies with their errors, rehearsals and figures. [What error bars mean](../explanations/error-bars.md).",
        ("device.simulation", "estimation", "papers", "plotting"),
    ),
    Theme(
        "auditing",
        "Auditing",
        "Exact proofs that a mechanism obeys a policy, bounds for [samplers of others](../audit-sampler.md), and the "
        "tests that every mechanism has to pass.",
        ("auditing", "testing"),
    ),
    Theme(
        "priors",
        "Priors",
        "Where it is known how probable values are. [Priors](../local-priors.md) explains them.",
        (
            *("auditing.prior_sets", "device.local_priors"),
            *("estimation.information_privacy", "estimation.noise", "estimation.prior_learning"),
        ),
    ),
    Theme("errors", "Errors", "Whatever is raised on purpose.", ("errors",)),
)

#: Modules whose ``__all__`` is public.
PUBLIC = (
    *("policy", "mechanisms", "compiler", "compiler.bounds", "device", "collecting", "spark", "estimation"),
    *("estimation.information_privacy", "plotting", "papers.data", "auditing", "testing", "errors"),
)
#: Packages without an underscore whose public names all stand in the root, or that have commands instead.
INNER = {"cli", "domain", "papers", "randomness", "server"}

#: The heading of a section of a numpydoc docstring: a member is shown by what stands before the first.
SECTION = re.compile(r"\n\n[A-Z][a-z]+\n-{4,}\n")

#: Arguments that mean the same wherever a docstring does not say otherwise.
ARGUMENTS = {
    "domain": "the `Domain`: all values there are",
    "epsilon": "a level ε, whatever `Epsilon` takes",
    "policy": "the `Policy` to obey",
    "mechanism": "the `Mechanism` that randomizes, or did",
    "value, values": "labels of the domain: `values` a list or a column of numpy, Arrow, pandas or polars",
    "reports": "what `privatize` gave: an array with one row per person; where so said, an iterator of arrays",
    "n, count": "how many people or reports; how many things are asked for",
    "aggregate, aggregates": "exact counts, from `aggregate` or a collector; `aggregates` has those of each group",
    "estimate": "what `estimate` gave",
    "method": "how to estimate: one of those that `estimate` names",
    "confidence, simultaneous": "the confidence level of intervals, and whether all of them are to hold together",
    "truth": "the true frequencies, where they are known, as `p`",
    "options": "what the table is to hold; most results take none",
    "comparison, simulation, optimum": "what `plan`, `simulate` and `optimal` gave",
    "region": "what `error_region` or `policy_region` gave",
    "document": "what `to_dict` gave",
    "p, prior": "how probable each value is; uniform if left out. In domain order, or "
    "[with labels](how-to/use-labelled-data.md); for two values, a number: that of the second",
    "prior_odds, before": "what somebody believed before: odds, or a probability",
    "side": "which of the two bounds of a prior policy are asked: those that `Prior` names",
    "utility": "what the best is best for: one of those that `optimal` names",
    "max_bits": "the longest report allowed, in bits",
    "max_seconds": "how long a search may take",
    "collection": "the name or id of a collection",
    "path": "a file",
    "column": "the name of the column that holds the values or the reports",
    "text, data": "what `to_json`, `to_bytes` or `encode_batch` wrote",
    "folder": "where files of data lie; None for a stand-in",
    "frame, running": "a `DataFrame` and the `SparkSession`",
    "stream": "a source of randomness for simulations and tests; left out, it is the operating system's",
    "seed": "the seed of a simulation",
    "progress": "a function that is called now and then with a `Progress`",
    "rows": "what is listed, the best first",
    "x, other": "a value, or for a mechanism its index; and another value. Else `other` is another of the same kind",
    "indices": "places of values in the domain",
    "weights": "what each value, question or group counts",
    "matrix, columns": "probabilities: one row per value, one column per report",
    "shape": "how many secrets there are, and how many values beside them",
    "threshold, thresholds, coin, coins, planes, block_size": "integers of a spec; computed where left out",
    "secret, budget": "the name of the factor that is secret, and how its ε was divided",
    "draws": "where a sampler gets its decisions from",
    "slice_": "the likelihood vectors among which a search looks",
}

#: What the names in signatures stand for that are no classes of these pages.
TYPES = {
    "EpsilonLike": 'a number, a fraction, or a text such as `"0.5"`, `"1/2"`, `"ln 3"`, `"inf"`',
    "Label": "a text, a number, or a tuple of labels",
    "Floats, Integers": "arrays of doubles; of 64-bit integers",
    "Frequencies": "a number per value: a list, a tuple, an array, or anything "
    "[with labels](how-to/use-labelled-data.md)",
    "Distance": "a name, a function of two labels, or a matrix",
    "Weights": "the weight of each question by its name",
    "Columns": "the name of a column, or of the columns of a product",
    "Stream": "`InsecureSeeded`, in tests and simulations",
    "Source": "an open file or pipe",
    "ProgressCallback": "a function of a `Progress`",
    "Kind": "a subclass of `Mechanism`",
    "Coverage": 'how much of a sampler was read: `"all"`, `"some"`, `"surrogate"` or `"none"`',
    "Distribution, Point, Terms, Column": "tuples and lists of exact fractions",
    "T": "whatever was loaded",
}
#: Classes inside Sfumato that signatures mention and users need not know.
INNER_TYPES = {
    *("AliasTable", "Cohort", "Deadline", "LawSource", "MixtureDraws", "MixtureMechanism"),
    *("SamplingDistribution", "ScoreLaw", "Scores", "Slice", "Solved", "Utility", "Words"),
}
#: Known from elsewhere: Python, numpy, Arrow, matplotlib, Spark.
FROM_ELSEWHERE = {
    *("Any", "ArrayLike", "Callable", "DataFrame", "False", "Figure", "Fraction", "Hashable", "Iterable", "Iterator"),
    *("Literal", "Mapping", "NDArray", "None", "Path", "Random", "Self", "Sequence", "SparkSession", "Table", "True"),
}


# -- what is public ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Name:
    """A public name: where it is imported from, and what it is."""

    path: str  # sfumato.plotting.save
    value: Any
    theme: Theme

    @property
    def short(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def heading(self) -> str:
        return f"{'class ' if inspect.isclass(self.value) else ''}`{self.path}`"

    @property
    def anchor(self) -> str:
        """As mkdocs and GitHub make it of the heading."""
        return re.sub(r"[^\w\- ]", "", self.heading).replace(" ", "-").lower()


@functools.cache
def names() -> tuple[Name, ...]:
    """Every public name, theme by theme, each once: of the root if it is there."""
    found: dict[Any, Name] = {}
    for module in (sfumato, *(importlib.import_module(f"sfumato.{name}") for name in PUBLIC)):
        for short in module.__all__:
            value = getattr(module, short)
            theme = None if inspect.ismodule(value) else _theme_of(value, module.__name__)
            if theme is not None:
                name = Name(f"{module.__name__}.{short}", value, theme)
                found.setdefault(_key(name), name)
    return tuple(sorted(found.values(), key=lambda name: THEMES.index(name.theme)))


def _key(name: Name) -> Any:
    return id(name.value) if callable(name.value) else name.path


def _theme_of(value: Any, module: str) -> Theme | None:
    """The theme with the longest home of the module that defines a value, or that exports a constant."""
    defined = f"{value.__module__ if callable(value) else module}."
    lengths = {
        theme: max((len(home) for home in theme.homes if defined.startswith(f"sfumato.{home}.")), default=0)
        for theme in THEMES
    }
    theme = max(lengths, key=lengths.__getitem__)
    return theme if lengths[theme] else None


@functools.cache
def documented() -> dict[Any, Name]:
    return {name.value: name for name in names() if inspect.isclass(name.value)}


def without_a_page() -> list[str]:
    """What looks public and is on no page: names of the root, and modules."""
    values = {name: getattr(sfumato, name) for name in sfumato.__all__}
    placed = {id(name.value) for name in names()}
    missing = [f"sfumato.{n}" for n, value in values.items() if id(value) not in placed and not inspect.ismodule(value)]
    shown = {module.partition(".")[0] for module in PUBLIC}
    modules = {module.name for module in pkgutil.iter_modules(sfumato.__path__) if not module.name.startswith("_")}
    return missing + sorted(f"sfumato.{module}" for module in modules - shown - INNER)


# -- members ----------------------------------------------------------------------------------------------

_PROPERTY = (property, functools.cached_property)
_UNBOUND = (classmethod, staticmethod)


@dataclass(frozen=True)
class Member:
    """A public property or method of a class, inherited or its own."""

    of: type
    name: str

    @property
    def held(self) -> Any:
        """A function, a property, a class method: what the class keeps under the name."""
        return inspect.getattr_static(self.of, self.name)

    @property
    def text(self) -> str:
        """Its docstring, or that of what it overrides."""
        written = (vars(kind)[self.name].__doc__ for kind in self.of.__mro__ if self.name in vars(kind))
        return inspect.cleandoc(next(filter(None, written), ""))

    @property
    def signature(self) -> inspect.Signature:
        """Without the instance or the class."""
        if isinstance(self.held, _PROPERTY):
            function: Any = self.held.fget if isinstance(self.held, property) else self.held.func
            return inspect.signature(function).replace(parameters=())
        signature = inspect.signature(getattr(self.of, self.name))
        if isinstance(self.held, _UNBOUND):
            return signature
        return signature.replace(parameters=list(signature.parameters.values())[1:])

    @property
    def line(self) -> str:
        if isinstance(self.held, _PROPERTY):
            return f"{self.name}: {type_text(self.signature.return_annotation)}"
        prefix = f"{self.of.__name__}." if isinstance(self.held, _UNBOUND) else ""
        return call(prefix + self.name, self.signature)

    def says_more_than(self, other: Member) -> bool:
        """Than the member of a base that it overrides."""
        return self.text != other.text or list(self.signature.parameters) != list(other.signature.parameters)


def members_of(name: Name) -> list[Member]:
    return members(name.value) if inspect.isclass(name.value) else []


def members(of: type) -> list[Member]:
    """Properties, then methods, in the order of the source; not those that a documented base explains as well."""
    bases = bases_of(of)
    order = dict.fromkeys(name for kind in of.__mro__ for name in vars(kind) if kind.__module__.startswith("sfumato"))
    found = [
        Member(of, name) for name in order
        if not name.startswith(("_", "test_")) and _is_member(inspect.getattr_static(of, name))
        and all(Member(of, name).says_more_than(Member(base, name)) for base in bases if hasattr(base, name))
    ]  # fmt: skip
    return sorted(found, key=lambda member: not isinstance(member.held, _PROPERTY))


def _is_member(held: Any) -> bool:
    return inspect.isfunction(held) or isinstance(held, (*_PROPERTY, *_UNBOUND))


def bases_of(of: type) -> list[type]:
    """The documented classes that it is one of, without those that another of them inherits from."""
    bases = [base for base in of.__mro__[1:] if base in documented()]
    return [base for base in bases if not any(base in other.__mro__[1:] for other in bases)]


# -- signatures -------------------------------------------------------------------------------------------


def type_text(annotation: Any) -> str:
    """An annotation as the source has it, without the modules of its names."""
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    elif isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        annotation = annotation.__name__
    return re.sub(r"\b[a-z]+\.(?=\w)", "", str(annotation)).replace("bool_", "bool").replace("str_", "str")


def parameter_text(parameter: inspect.Parameter) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL.value: "*", inspect.Parameter.VAR_KEYWORD.value: "**"}
    text = f"{stars.get(parameter.kind.value, '')}{parameter.name}"
    if parameter.annotation is not parameter.empty:
        text += f": {type_text(parameter.annotation)}"
    if parameter.default is not parameter.empty:
        default = repr(parameter.default)
        text += f" = {'…' if default.startswith('<') else default}"
    return text


def call(name: str, signature: inspect.Signature, width: int | None = None) -> str:
    """``name(parameters) -> type``: on one line, or where that is longer than ``width`` with one parameter a line."""
    parts: list[str] = []
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    for place, parameter in enumerate(signature.parameters.values()):
        only_named = parameter.kind is parameter.KEYWORD_ONLY
        if only_named and not {parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL} & set(kinds[:place]):
            parts.append("*")
        if not parameter.name.startswith("_"):
            parts.append(parameter_text(parameter))
    returned = signature.return_annotation
    end = "" if returned in (signature.empty, None, "None") else f" -> {type_text(returned)}"
    line = f"{name}({', '.join(parts)}){end}"
    if width is None or len(line) <= width:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){end}"])


def is_protocol(of: type) -> bool:
    return bool(getattr(of, "_is_protocol", False))


def constructor(of: type) -> inspect.Signature | None:
    """How it is made; None of what is abstract, and of errors that take what every error takes."""
    if inspect.isabstract(of) or is_protocol(of) or (issubclass(of, Exception) and "__init__" not in vars(of)):
        return None
    return inspect.signature(of).replace(return_annotation=inspect.Signature.empty)


def signature_of(name: Name) -> str:
    """How it is called or made; of a class that nobody makes, only its name; of a constant, its value."""
    value = name.value
    if not callable(value):
        return f"{name.short} = {value!r}"
    signature = constructor(value) if inspect.isclass(value) else inspect.signature(value)
    return name.short if signature is None else call(name.short, signature, WIDTH)


# -- what is not said -------------------------------------------------------------------------------------


def undocumented() -> list[str]:
    """Public names and members without a docstring, and parameters that nothing speaks of."""
    found = []
    for name in names():
        said = text_of(name)
        if not said:
            found.append(name.path)
        if inspect.isclass(name.value):
            said = " ".join(
                [said, *commented_fields(name.value), *(text_of(documented()[b]) for b in bases_of(name.value))]
            )
            signature = constructor(name.value)
            found += [] if signature is None else _unspoken(name.path, signature, said)
            for member in members_of(name):
                path = f"{name.path}.{member.name}"
                found += [] if member.text else [path]
                found += _unspoken(path, member.signature, f"{said} {member.text}")
        elif callable(name.value):
            found += _unspoken(name.path, inspect.signature(name.value), said)
    return found


def _unspoken(path: str, signature: inspect.Signature, text: str) -> list[str]:
    common = {name for names in ARGUMENTS for name in names.split(", ")}
    return [
        f"{path}: {name}" for name in signature.parameters
        if not name.startswith("_") and name not in common and not _speaks_of(text, name)
    ]  # fmt: skip


def unexplained_types() -> list[str]:
    """Names in signatures that no page and no list here explains."""
    explained = {name.short for name in names()} | INNER_TYPES | FROM_ELSEWHERE | set(", ".join(TYPES).split(", "))
    shown = {name: [signature_of(name)] + [member.line for member in members_of(name)] for name in names()}
    return sorted(
        f"{name.path}: {word}" for name, lines in shown.items()
        for word in set(re.findall(r"\b[A-Z]\w*", re.sub(r"'.*?'", "", " ".join(lines)))) - explained
    )  # fmt: skip


def _speaks_of(text: str, name: str) -> bool:
    """By its name, or by its words, one or many: "the first group" speaks of ``groups``."""
    words = (word.removesuffix("s") or word for word in name.strip("_").split("_"))
    by_words = all(re.search(rf"\b{word}(s|es)?\b", text, flags=re.IGNORECASE) for word in words)
    return by_words or re.search(rf"\b{name}\b", text) is not None


#: Sections of numpydoc that consist of terms with descriptions.
_LISTS = ("Parameters", "Returns", "Yields", "Raises", "Attributes", "See Also")


# -- pages ------------------------------------------------------------------------------------------------


def text_of(name: Name) -> str:
    """The docstring; of a constant, the comment ``#:`` above it."""
    if callable(name.value):
        text = inspect.cleandoc(name.value.__doc__ or "")
        return "" if text.startswith(f"{name.short}(") else text  # which a dataclass says of itself
    for module in (importlib.import_module(name.path.rpartition(".")[0]), *_modules_below(name.path)):
        found = re.search(rf"((?:^#:.*\n)+)^{name.short}\b.* = ", inspect.getsource(module), flags=re.MULTILINE)
        if found is not None:
            return re.sub(r"^#: ?", "", found[1], flags=re.MULTILINE).strip()
    return ""


def _modules_below(path: str) -> Iterator[Any]:
    package = importlib.import_module(path.rpartition(".")[0])
    for found in pkgutil.iter_modules(getattr(package, "__path__", ())):
        yield importlib.import_module(f"{package.__name__}.{found.name}")


def markdown(docstring: str) -> str:
    """Return a docstring as Markdown: paragraphs on one line each, examples as code, numpydoc sections as lists."""
    opening, *sections = re.split(r"^(\w[\w ]*)\n-{3,}\n", docstring, flags=re.MULTILINE)
    parts = [_paragraphs(opening.strip())]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        text = body.strip("\n")
        parts.append(f"**{title}**\n\n{_items(text) if title in _LISTS else _paragraphs(text)}")
    return re.sub(r":\w+:`~?([\w.]+)`", r"`\1`", "\n\n".join(parts))


def _items(body: str) -> str:
    """Return the terms of a numpydoc section, each with its indented description, as a list."""
    items: list[str] = []
    for line in filter(None, body.split("\n")):
        if line.startswith(" "):
            items[-1] += f" {line.strip()}"
        else:
            items.append(f"- `{line.strip()}`:")
    return "\n".join(items)


def _paragraphs(text: str) -> str:
    parts = []
    for paragraph in text.split("\n\n"):
        if paragraph.lstrip().startswith(">>>"):
            parts.append(f"```pycon\n{inspect.cleandoc(paragraph)}\n```")
        elif paragraph.startswith((" ", "- ")):
            parts.append(paragraph)
        else:
            parts.append(re.sub("::$", ":", paragraph).replace("\n", " "))
    return "\n\n".join(parts)


def first_sentence(docstring: str) -> str:
    paragraph = docstring.partition("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=\.) (?=[A-Z`*])", paragraph)[0]


def link(name: Name, page: str) -> str:
    """To a name, from a page."""
    target = "" if page == name.theme.page else f"{name.theme.page}.md"
    return f"[`{name.short}`]({target}#{name.anchor})"


def entry(name: Name) -> str:
    parts = [f"### {name.heading}"]
    parts += [f"```py\n{signature_of(name)}\n```", markdown(text_of(name))]
    if inspect.isclass(name.value):
        parts += class_parts(name)
    return "\n\n".join(parts)


def class_parts(name: Name) -> Iterator[str]:
    """What a class has: its bases, names, properties and methods."""
    bases = bases_of(name.value)
    if bases:
        kinds = " and ".join(link(documented()[base], name.theme.page) for base in bases)
        yield f"A kind of {kinds}, with all its members."
    attributes = [f"`{key}: {kind}`" for key, kind in annotated_attributes(name.value).items()]
    if attributes:
        yield f"Attributes: {', '.join(attributes)}."
    found = [f"- `{key} = {held!r}`" for key, held in vars(name.value).items() if key in ("kind", "name", "encoding")
             and isinstance(held, str)]  # fmt: skip
    found += [f"- `{key}`: {text}" for key, text in commented_fields(name.value).items()]
    found += [f"- `{member.line}`: {markdown(prose(member.text))}" for member in members_of(name)]
    tests = [key for key in vars(name.value) if key.startswith("test_")]
    found += [f"- `{key}`" for key in tests]
    if found:
        yield "\n".join(found)


def commented_fields(of: type) -> dict[str, str]:
    """The fields of a class that have a comment ``#:`` above them."""
    fields = re.findall(r"((?:^ +#:.*\n)+)^ +(\w+):", inspect.getsource(of), flags=re.MULTILINE)
    return {name: re.sub(r"\s*#: ?", " ", text).strip() for text, name in fields if not name.startswith("_")}


def annotated_attributes(of: type) -> dict[str, str]:
    """Those that its body declares, where they are no parameters of its constructor."""
    declared = inspect.get_annotations(of) if not hasattr(of, "__match_args__") else {}
    return {
        name: re.sub(r"^ClassVar\[(.*)\]$", r"\1", type_text(kind))
        for name, kind in declared.items()
        if not name.startswith("_") and name not in commented_fields(of)
    }


def prose(docstring: str) -> str:
    """In one paragraph, without examples."""
    text = SECTION.split(docstring, maxsplit=1)[0]
    return " ".join(part for part in text.split("\n\n") if not part.lstrip().startswith(">>>"))


def page(theme: Theme) -> str:
    head = f"# {theme.title}\n\n{theme.about}"
    back = "[All names](../reference.md), and what arguments mean. Written by `scripts/make_reference.py`."
    return "\n\n".join([head, back, *(entry(name) for name in names() if name.theme is theme)]) + "\n"


def index() -> str:
    """The first page: every name with its first sentence, and what signatures have in common."""
    parts = [HEAD.strip()]
    for theme in THEMES:
        parts.append(f"## {theme.title}")
        parts.append(
            "\n".join(
                f"- [`{name.path.removeprefix('sfumato.')}`]"
                f"(reference/{theme.page}.md#{name.anchor}): {first_sentence(text_of(name))}"
                for name in names() if name.theme is theme
            )
        )  # fmt: skip
    parts += ["## Arguments", "Where a docstring says nothing else:", table("argument", ARGUMENTS)]
    parts += ["## Types", "Signatures are shortened: `NDArray` is that of numpy.", table("name", TYPES)]
    inner = ", ".join(f"`{name}`" for name in sorted(INNER_TYPES))
    parts.append(f"Users need neither construct nor read these internal classes: {inner}.")
    return "\n\n".join(parts) + "\n"


def table(title: str, rows: dict[str, str]) -> str:
    lines = [f"| {', '.join(f'`{name}`' for name in names.split(', '))} | {said} |" for names, said in rows.items()]
    return "\n".join([f"| {title} | |", "|---|---|", *lines])


def pages() -> dict[Path, str]:
    """Every page with its text."""
    return {INDEX: index(), **{DOCS / "reference" / f"{theme.page}.md": page(theme) for theme in THEMES}}


if __name__ == "__main__":
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
