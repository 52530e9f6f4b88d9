"""Nothing that Python shows of a function tells the fused form from the function it guards, but for the code inside."""

from __future__ import annotations

import functools
import inspect
import pickle
import pydoc
import types
import typing
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeVar

import pytest

from seawall import CircuitBreaker, Target
from seawall.guard import forms
from seawall.guard.kinds import FUNCTION, Kind
from seawall.guard.template import NAMES
from seawall.policies.bulkhead import Bulkhead
from tests.guard.both import driven

F = TypeVar("F", bound=Callable[..., Any])

pytestmark = pytest.mark.req("LIB-1")
shared = Target("CORE", breaker=CircuitBreaker(2), bulkhead=Bulkhead(10))
STACKS = {
    "breaker": lambda: CircuitBreaker(2), "bulkhead": lambda: Bulkhead(2), "neither": lambda: Target("CORE"),
    "both": lambda: Target("CORE", breaker=CircuitBreaker(2), bulkhead=Bulkhead(2)),
}  # fmt: skip
every_stack = pytest.mark.parametrize("stack", STACKS.values(), ids=STACKS)
DEFAULT: list[int] = []


def fused(fn: F) -> F:
    return forms.fused(shared, fn)


def defined(text: str, **names: Any) -> Any:
    """The function ``fn`` of this source: parameter lists that no linter would let pass."""
    scope = dict(names)
    exec(text, scope)
    return scope["fn"]


def nested() -> Any:
    outside = "outside"

    def inner(a: Any, b: Any = DEFAULT) -> Any:
        return a, b, outside

    return inner


def wrapping(fn: Callable[..., Any]) -> Any:
    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


def refusal(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """What the ``TypeError`` of a call says, if there is one."""
    try:
        fn(*args, **kwargs)
    except TypeError as error:
        return str(error)
    return None


MANY = [f"p{number}" for number in range(200)]
SIGNATURES: dict[str, tuple[Any, list[tuple[tuple[Any, ...], dict[str, Any]]]]] = {
    "none": (defined("def fn(): return 'result'"), [((), {})]),
    "every sort": (
        defined("def fn(a, /, b, *rest, key, **more): return a, b, rest, key, more"),
        [((1, 2), {"key": 3}), ((1, 2, 3, 4), {"key": 5, "a": 6, "rest": 7, "more": 8}), ((1,), {"b": 2, "key": 3})],
    ),
    "positional only": (defined("def fn(a, b=2, /): return a, b"), [((1,), {}), ((1, 3), {})]),
    "positional only with the same name by keyword": (
        defined("def fn(a=1, /, **more): return a, more"), [((), {"a": 2}), ((1,), {"a": 2})],
    ),
    "keyword only": (
        defined("def fn(*, a=default, b, c=()): return a, b, c", default=DEFAULT),
        [((), {"b": 1}), ((), {"b": 1, "c": 2, "a": 3})],
    ),
    "rest and keyword": (defined("def fn(*rest, key=1): return rest, key"), [((), {}), ((1, 2), {"key": 3})]),
    "star": (defined("def fn(*args, **kwargs): return args, kwargs"), [((), {}), ((1,), {"args": 2, "kwargs": 3})]),
    "defaults": (
        defined("def fn(a, b=default, c=None, *, d=default): return a, b, c, d", default=DEFAULT),
        [((1,), {}), ((1, 2, 3), {}), ((1,), {"c": 2, "d": 4})],
    ),
    "letters of the world": (defined("def fn(größe, 大=1, *, ñ): return größe, 大, ñ"), [((1,), {"ñ": 2, "大": 3})]),
    "letters that are folded": (defined("def fn(ﬁt, ªx=1): return ﬁt, ªx"), [((), {"fit": 2, "ax": 3})]),
    "soft keywords": (defined("def fn(match, case, _, type): return match, case, _, type"), [((1, 2, 3), {"type": 4})]),
    "names of make": (defined("def fn(make, self, cls, args): return make, self, cls, args"), [((1, 2, 3, 4), {})]),
    "all the names": (
        defined(f"def fn({', '.join(NAMES)}, *, free_, error___): return {', '.join(NAMES)}, free_, error___"),
        [(tuple(range(len(NAMES))), {"free_": 1, "error___": 2})],
    ),
    "two hundred": (
        defined(f"def fn({', '.join(MANY[:100])}, *, {', '.join(MANY[100:])}): return {', '.join(MANY)}"),
        [(tuple(range(100)), dict.fromkeys(MANY[100:], 1))],
    ),
    "lambda": (lambda a, b=DEFAULT, *c: (a, b, c), [((1,), {}), ((1, 2, 3), {})]),
    "nested": (nested(), [((1,), {}), ((), {"a": 1, "b": 2})]),
    "wrapped": (wrapping(nested()), [((1,), {}), ((), {"a": 1, "b": 2})]),
}
WRONG: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}), ((1,), {}), ((1, 2, 3), {}), ((1, 2, 3), {"no_such": 1}), ((1,), {"a": 1}), ((1,), {"b": 2, "a": 1}),
    (tuple(range(300)), {}), ((), {"a": 1, "b": 2}),
]  # fmt: skip
every_signature = pytest.mark.parametrize(("fn", "calls"), SIGNATURES.values(), ids=SIGNATURES)


# -- the signature
@every_signature
def test_its_signature_is_its_own_and_not_only_said_to_be(fn: Any, calls: object) -> None:
    guarded = fused(fn)
    for follow in (True, False):
        ours, theirs = (inspect.signature(one, follow_wrapped=follow) for one in (guarded, fn))
        assert ours == theirs
        assert [one.default is other.default for one, other in zip(
            ours.parameters.values(), theirs.parameters.values(), strict=True)] == [True] * len(ours.parameters)
    assert guarded.__code__ is not fn.__code__
    assert inspect.unwrap(guarded) is inspect.unwrap(fn)


@every_stack
@every_signature
def test_arguments_go_where_they_would(fn: Any, calls: Any, stack: Callable[[], Any]) -> None:
    guarded = forms.fused(stack(), fn)
    for args, kwargs in calls:
        assert guarded(*args, **kwargs) == fn(*args, **kwargs)


@pytest.mark.parametrize("name", sorted(SIGNATURES.keys() - {"star", "wrapped"}))
def test_wrong_arguments_are_refused_in_the_functions_own_words(name: str) -> None:
    fn, refused = SIGNATURES[name][0], 0
    for args, kwargs in WRONG:
        wanted = refusal(fn, args, kwargs)
        assert refusal(fused(fn), args, kwargs) == wanted
        refused += wanted is not None
        assert wanted is None or wanted.startswith(f"{fn.__qualname__}() ")
    assert refused


@pytest.mark.parametrize("name", NAMES)
@every_stack
def test_a_parameter_may_have_any_name_the_generated_code_uses(name: str, stack: Callable[[], Any]) -> None:
    fn = defined(
        f"def fn({name}, *, {name}_=2, **__):\n if {name} == 'fail': raise ConnectionError\n return {name}, {name}_, __")
    policies = stack()
    guarded = forms.fused(policies, fn)
    assert guarded(1, **{f"{name}_": 3, "x": 4}) == (1, 3, {"x": 4})
    assert guarded(**{name: 1}) == (1, 2, {})
    for _ in range(3 if policies.breaker is None else 2):  # through the lines for an error too
        with pytest.raises(ConnectionError):
            guarded("fail")
    if policies.breaker is not None:
        assert policies.breaker.state == "OPEN"
    if policies.bulkhead is not None:
        assert policies.bulkhead.snapshot().in_flight == 0


@pytest.mark.parametrize("name", NAMES)
def test_so_it_may_in_a_coroutine_and_in_generators(name: str) -> None:
    starts = {"function": "def fn", "coroutine": "async def fn", "generator": "def fn", "async generator": "async def fn"}
    for kind in Kind:
        way = "yield" if "generator" in kind.value else "return"
        fn = defined(f"{starts[kind.value]}({name}, {name}_=2):\n {way} {name}, {name}_")
        assert driven(kind, fused(fn)(1)) == (1, 2)
        assert driven(kind, fused(fn)(**{name: 3, f"{name}_": 4})) == (3, 4)


def test_what_only_a_compiler_can_name_gets_star_arguments() -> None:
    """The one argument of a generator expression is called ``.0``; code made by hand may say ``class``."""
    code: types.CodeType = eval("(item for item in ()).gi_code")
    assert code.co_varnames[0] == ".0"
    assert list(fused(types.FunctionType(code, {}))(iter([1, 2]))) == [1, 2]
    by_hand = defined("def fn(a, b=2): return a, b").__code__.replace(co_varnames=("class", "b"))
    made = types.FunctionType(by_hand, {}, argdefs=(2,))
    assert fused(made)(1) == (1, 2)
    assert fused(made)(**{"class": 1, "b": 3}) == (1, 3)


def test_defaults_are_the_same_objects_and_may_be_changed_inside() -> None:
    def keep(value: int, kept: list[int] = [], *, also: list[int] = []) -> tuple[list[int], list[int]]:  # noqa: B006
        kept.append(value)
        also.append(value)
        return kept, also

    guarded = fused(keep)
    assert guarded.__defaults__ is keep.__defaults__
    assert (guarded(1), keep(2), guarded(3)) == (([1, 2, 3], [1, 2, 3]),) * 3
    assert guarded(4, [], also=[]) == ([4], [4])


# -- what else is shown
@fused
def at_module_level(amount: int, /, to: "str" = "x", *, fast: bool = False) -> Iterator[Account]:  # noqa: UP037
    """Move money."""
    yield Account()


class Account:
    """Methods, with a parameter whose name is mangled."""

    @fused
    def mangled(self, __a: int, *, __b: int = 2) -> tuple[int, int]:
        return __a, __b

    @staticmethod
    @fused
    def static(value: int, more: int = 1) -> tuple[int, int]:
        return value, more

    @classmethod
    @fused
    def of_class(cls, value: int) -> tuple[str, int]:
        return cls.__name__, value

    @fused
    async def later(self, value: int) -> int:
        return value


def test_name_docstring_annotations_and_attributes_are_kept() -> None:
    def transfer(amount: int, /, to: "Account", *, fast: bool = False) -> Iterator[str]:  # noqa: UP037
        """Move money."""
        return iter([f"{amount} {to} {fast}"])

    transfer.route = "/transfer"  # type: ignore[attr-defined]  # what frameworks put there
    guarded = fused(transfer)
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__", "__defaults__", "__kwdefaults__"):
        assert getattr(guarded, name) == getattr(transfer, name)
    assert guarded.__dict__ == {"route": "/transfer", "__wrapped__": transfer}
    guarded.route = "/other"  # type: ignore[attr-defined]
    assert transfer.__dict__ == {"route": "/transfer"}
    assert typing.get_type_hints(guarded) == typing.get_type_hints(transfer)
    assert typing.get_type_hints(at_module_level)["return"] == Iterator[Account]


@pytest.mark.parametrize("fn", [entry[0] for entry in SIGNATURES.values()], ids=SIGNATURES)
def test_help_shows_the_same_page(fn: Any) -> None:
    assert pydoc.render_doc(fused(fn)) == pydoc.render_doc(fn)


def test_it_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(at_module_level)) is at_module_level
    assert pickle.loads(pickle.dumps(Account.static)) is Account.static


def test_methods_bind_and_mangled_names_are_the_classes_own() -> None:
    account = Account()
    assert account.mangled(1) == Account.mangled(account, 1) == (1, 2)
    assert account.mangled(_Account__a=3, _Account__b=4) == (3, 4)  # type: ignore[call-arg]  # mypy does not mangle
    assert (account.static(1), Account.static(1, more=2)) == ((1, 1), (1, 2))
    assert account.of_class(1) == Account.of_class(1) == ("Account", 1)
    assert inspect.ismethod(account.later)
    assert inspect.iscoroutinefunction(account.later)


@pytest.mark.parametrize("star", [False, True])
def test_it_is_of_the_kind_that_it_guards(star: bool) -> None:
    def function(a: int) -> int:
        return a

    async def coroutine(a: int) -> int:
        return a

    def generator(a: int) -> Iterator[int]:
        yield a

    async def async_generator(a: int) -> AsyncIterator[int]:
        yield a

    asked = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    for kind, fn in zip(Kind, (function, coroutine, generator, async_generator), strict=True):
        guarded = forms.fused(shared, fn, star=star)
        assert [ask(guarded) for ask in asked] == [ask(fn) for ask in asked]
        assert sum(ask(fn) for ask in asked) == (kind is not FUNCTION)
