from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import InitVar, dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any, Literal, NamedTuple
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.errors import InvalidPayload, NotConfigured
from jobs.payload import MAX_DEPTH, dump, encode, load

LIMIT = 256 * 1024
BERLIN = ZoneInfo("Europe/Berlin")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Shape(Enum):
    POINT = (0, 0)
    LINE = (0, 1)


class Word(StrEnum):
    YES = "yes"


class Pair(NamedTuple):
    a: int
    b: int


class Text(str):
    pass


@dataclass(frozen=True)
class Line:
    sku: UUID
    price: Decimal
    count: int = 1


@dataclass(frozen=True)
class Invoice:
    id: UUID
    total: Decimal
    due: datetime
    day: date
    grace: timedelta
    colour: Colour
    level: Level
    shape: Shape
    lines: list[Line]
    pair: tuple[int, Decimal]
    tags: tuple[str, ...]
    rates: dict[str, Decimal]
    mode: Literal["fast", "slow"]
    note: str | None = None
    previous: Invoice | None = None
    extra: Any = field(default_factory=dict)


def invoice(**changes: Any) -> Invoice:
    values: dict[str, Any] = {
        "id": UUID(int=7),
        "total": Decimal("1.10"),
        "due": datetime(2026, 7, 1, 12, tzinfo=UTC),
        "day": date(2026, 7, 1),
        "grace": timedelta(days=-1, microseconds=1),
        "colour": Colour.RED,
        "level": Level.HIGH,
        "shape": Shape.LINE,
        "lines": [Line(UUID(int=1), Decimal("0.50"))],
        "pair": (1, Decimal(2)),
        "tags": ("a", "b"),
        "rates": {"vat": Decimal("0.19")},
        "mode": "fast",
    }
    return Invoice(**{**values, **changes})


def round_trip(payload: Any, payload_type: type[Any]) -> Any:
    return load(json.loads(encode(dump(payload, payload_type), limit=LIMIT)), payload_type)


def refusal(value: Any, limit: int = LIMIT) -> str:
    with pytest.raises(InvalidPayload) as caught:
        encode(value, limit=limit)
    return str(caught.value)


# --- plain payloads


def test_a_plain_payload_becomes_compact_json() -> None:
    assert encode({"a": [1, 2.5, True, None, "ä"]}, limit=LIMIT) == '{"a":[1,2.5,true,null,"ä"]}'


def test_no_payload_is_an_empty_one() -> None:
    assert encode(None, limit=LIMIT) == "{}"
    assert dump(None, None) == {}


@pytest.mark.parametrize("value", [[1], "text", 7, True, (1,), OrderedDict(a=1)])
def test_a_payload_that_is_no_dict_is_refused(value: object) -> None:
    assert refusal(value).startswith("payload: is a ")
    with pytest.raises(InvalidPayload):
        dump(value, None)


@pytest.mark.parametrize("value", [None, 7, "text", [1, "a"], {"a": 1}])
def test_a_result_may_be_any_json_value(value: object) -> None:
    assert json.loads(encode(value, limit=LIMIT, field="result")) == value


def test_pl_01_nul_is_refused_with_its_path() -> None:
    assert refusal({"items": [{}, {"name": "a\0"}]}).startswith("payload.items[1].name: contains NUL (at 1)")
    assert refusal({"a\0b": 1}).startswith("payload: has the key 'a\\x00b', which contains NUL")
    assert refusal({"a": [[["\0"]]]}).startswith("payload.a[0][0][0]: contains NUL")
    assert "NUL" in refusal({"a": {"x y": "\0"}})
    assert refusal({"a": {"x y": "\0"}}).startswith("payload.a['x y']: ")


def test_pl_01_text_that_only_looks_like_an_escaped_nul_is_kept() -> None:
    value = {"a": "\\u0000", "\\u0000": "\\\\u0000"}
    assert json.loads(encode(value, limit=LIMIT)) == value


def test_pl_01_a_subclass_of_str_is_refused_even_with_sound_text() -> None:
    assert refusal({"a": Text("sound")}).startswith("payload.a: is a Text: it would come back as a plain str")
    assert refusal({Text("a"): 1}).startswith("payload: has the key 'a', a Text; keys are text")


@pytest.mark.parametrize("text", ["\ud835", "a\udcff", "\ud83d\ude00"])
def test_pl_04_lone_surrogates_are_refused(text: str) -> None:
    assert refusal({"a": [text]}).startswith("payload.a[0]: contains a lone surrogate")
    assert "lone surrogate" in refusal({text: 1})
    assert "\ud835" not in refusal({text: 1})


def test_characters_outside_of_the_basic_plane_are_kept() -> None:
    assert json.loads(encode({"😀": "𐍈"}, limit=LIMIT)) == {"😀": "𐍈"}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_does_not_have_are_refused(number: float) -> None:
    assert refusal({"a": {"b": number}}).startswith(f"payload.a.b: is {number}, which JSON does not have")


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (b"x", "base64"),
        ({1}, "sorted list"),
        (frozenset(), "sorted list"),
        ((1, 2), "come back as a list"),
        (Pair(1, 2), "come back as a list"),
        (uuid4(), "dataclass"),
        (Decimal("1.10"), "dataclass"),
        (datetime.now(UTC), "dataclass"),
        (date.today(), "dataclass"),  # noqa: DTZ011
        (timedelta(1), "dataclass"),
        (Colour.RED, "its value"),
        (Level.LOW, "its value"),
        (Word.YES, "its value"),
        (OrderedDict(), "plain dict"),
        (object(), "JSON has"),
        (len, "JSON has"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_pl_06_what_would_not_come_back_equal_is_refused_with_advice(value: object, advice: str) -> None:
    message = refusal({"a": [value]})
    assert message.startswith("payload.a[0]: is a")
    assert advice in message


def test_pl_06_a_model_instance_is_refused_with_its_own_advice() -> None:
    class Customer:
        _meta = pk = None

    assert "primary key" in refusal({"customer": Customer()})


@pytest.mark.parametrize("key", [1, None, True, 1.5, (1,), Word.YES])
def test_pl_06_keys_that_are_no_text_are_refused(key: object) -> None:
    assert "keys are text" in refusal({"a": {key: 1}})
    assert refusal({"a": {key: 1}}).startswith("payload.a: has the key ")


def test_large_numbers_are_kept_as_what_they_are() -> None:
    value = {
        "i": 2**200,
        "negative": -(10**999),
        "f": 1e300,
        "g": -1.5e22,
        "small": 5e-324,
        "text": '1e+30 " 1e+30',
    }
    text = encode(value, limit=LIMIT)
    assert json.loads(text) == value
    assert json.loads(text)["text"] == value["text"]
    assert "e+" not in text.replace(json.dumps(value["text"]), "")


def test_a_number_that_python_could_not_read_back_is_refused() -> None:
    assert refusal({"a": 10**5000}).startswith("payload.a: is a whole number of more than 4,000 digits")


def test_a_payload_up_to_the_limit_is_kept_and_one_byte_more_is_refused() -> None:
    for letter in ("a", "ä", "\n", "1"):
        text = encode({"a": letter * 100}, limit=LIMIT)
        size = len(text.encode())
        assert encode({"a": letter * 100}, limit=size) == text
        assert refusal({"a": letter * 100}, limit=size - 1).startswith("payload: is ")
    many: list[list[Any]] = [[], [1] * 50, [[]] * 50, [{}] * 50, [None, True] * 50, [""] * 50]
    for items in many:
        size = len(encode({"a": items}, limit=LIMIT))
        assert encode({"a": items}, limit=size)
        assert "store the data elsewhere" in refusal({"a": items}, limit=size - 1)


def test_a_small_value_with_an_enormous_text_is_refused_at_once() -> None:
    value: list[Any] = ["x" * 1000]
    for _ in range(60):
        value = [value, value]
    assert "far larger as JSON" in refusal({"a": value})


def test_nesting_is_limited() -> None:
    def nested(levels: int) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for _ in range(levels - 1):
            value = {"a": value}
        return value

    assert encode(nested(MAX_DEPTH), limit=LIMIT)
    assert "nested deeper than 64 levels" in refusal(nested(MAX_DEPTH + 1))
    assert "nested deeper than 64 levels" in refusal(nested(100_000))


def test_a_value_that_contains_itself_is_refused_at_its_place() -> None:
    loop: dict[str, Any] = {"b": {}}
    loop["b"]["c"] = [1, loop]
    assert refusal({"a": loop}) == "payload.a: contains itself; break the cycle"
    items: list[Any] = []
    items.append(items)
    assert refusal({"x": 1, "items": items}).startswith("payload.items: contains itself")
    whole: dict[str, Any] = {}
    whole["self"] = whole
    assert refusal(whole).startswith("payload: contains itself")


def test_the_same_part_twice_is_no_cycle() -> None:
    part = {"a": 1}
    assert json.loads(encode({"x": part, "y": [part, part]}, limit=LIMIT)) == {"x": part, "y": [part, part]}


def test_sk_02_no_refusal_shows_a_value() -> None:
    for value in ({"password": "hunter2\0"}, {"password": Text("hunter2")}, {"password": b"hunter2"}):
        assert "hunter2" not in refusal(value)
    with pytest.raises(InvalidPayload) as caught:
        load({"sku": "hunter2", "price": "1"}, Line)
    assert "hunter2" not in str(caught.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def types(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: types(item) for key, item in value.items()}
    return [types(item) for item in value] if isinstance(value, list) else type(value)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_pl_06_a_plain_payload_is_refused_for_nul_or_comes_back_equal(payload: dict[str, Any]) -> None:
    has_nul = "\\u0000" in json.dumps(payload).replace("\\\\", "")
    try:
        text = encode(payload, limit=LIMIT)
    except InvalidPayload:
        assert has_nul
        return
    assert not has_nul
    assert json.loads(text) == payload
    assert types(json.loads(text)) == types(payload)


# --- dataclass payloads


def test_pl_06_a_dataclass_comes_back_equal_and_with_the_same_types() -> None:
    sent = invoice(previous=invoice(note="ä"))
    back = round_trip(sent, Invoice)
    assert back == sent
    assert str(back.total) == "1.10"
    assert type(back.pair) is tuple
    assert type(back.level) is Level
    assert type(back.lines[0]) is Line


moments = st.datetimes(
    min_value=datetime(1, 1, 3),  # noqa: DTZ001
    max_value=datetime(9999, 12, 29),  # noqa: DTZ001
    timezones=st.sampled_from(
        [
            UTC,
            timezone(timedelta(hours=5, minutes=45)),
            timezone(timedelta(seconds=-1)),
            ZoneInfo("UTC"),
            BERLIN,
        ]
    ),
)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(
    st.builds(
        invoice,
        id=st.uuids(),
        total=st.decimals(allow_nan=False, allow_infinity=False),
        due=moments.filter(lambda at: at.astimezone(UTC).astimezone(at.tzinfo) == at),
        day=st.dates(),
        grace=st.timedeltas(),
        colour=st.sampled_from(Colour),
        level=st.sampled_from(Level),
        shape=st.sampled_from(Shape),
        tags=st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))).map(tuple),
        lines=st.lists(
            st.builds(Line, sku=st.uuids(), price=st.decimals(allow_nan=False, allow_infinity=False))
        ),
        note=st.none() | st.just("x"),
    )
)
def test_pl_06_any_dataclass_comes_back_equal(sent: Invoice) -> None:
    back = round_trip(sent, Invoice)
    assert back == sent
    assert str(back.total) == str(sent.total)
    assert back.due.astimezone(UTC) == sent.due.astimezone(UTC)
    assert encode(dump(back, Invoice), limit=LIMIT) == encode(dump(sent, Invoice), limit=LIMIT)


@pytest.mark.parametrize("fold", [0, 1])
def test_a_time_in_the_repeated_hour_keeps_its_zone_and_its_pass(fold: int) -> None:
    sent = invoice(due=datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=fold))
    back = round_trip(sent, Invoice)
    assert back == sent
    assert back.due.astimezone(UTC) == sent.due.astimezone(UTC)


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        ({"due": datetime(2026, 1, 1)}, "due", "naive datetime"),  # noqa: DTZ001
        ({"due": datetime(2026, 3, 29, 2, 30, tzinfo=BERLIN)}, "due", "does not exist"),
        ({"due": "2026-01-01"}, "due", "must be datetime, not str"),
        ({"day": datetime.now(UTC)}, "day", "must be date, not datetime"),
        ({"total": 1.1}, "total", "must be Decimal, not float"),
        ({"total": Decimal("NaN")}, "total", "finite"),
        ({"total": Decimal("sNaN")}, "total", "finite"),
        ({"total": Decimal("-Infinity")}, "total", "finite"),
        ({"id": str(uuid4())}, "id", "must be UUID, not str"),
        ({"lines": [Line(UUID(int=1), Decimal(1), True)]}, "lines[0].count", "must be int, not bool"),
        ({"lines": (1,)}, "lines", "must be a list, not tuple"),
        ({"pair": (1,)}, "pair", "must have 2 items, not 1"),
        ({"tags": ("a", 1)}, "tags[1]", "must be str, not int"),
        ({"rates": {"vat": 1}}, "rates.vat", "must be Decimal, not int"),
        ({"mode": "medium"}, "mode", "must be one of 'fast', 'slow'"),
        ({"note": 1}, "note", "must be str or None, not int"),
        ({"note": Text("x")}, "note", "must be str or None, not Text"),
        ({"colour": "red"}, "colour", "must be Colour, not str"),
    ],
)
def test_a_field_of_another_type_is_refused_by_name(changes: dict[str, Any], path: str, message: str) -> None:
    with pytest.raises(InvalidPayload) as caught:
        dump(invoice(**changes), Invoice)
    assert caught.value.field == f"payload.{path}"
    assert message in caught.value.message


def test_another_dataclass_or_a_subclass_is_refused() -> None:
    @dataclass(frozen=True)
    class Special(Line):
        pass

    for value in (Special(UUID(int=1), Decimal(1)), invoice(), 7):
        with pytest.raises(InvalidPayload, match="payload: must be Line"):
            dump(value, Line)


@pytest.mark.parametrize(
    ("data", "path", "message"),
    [
        ({"price": "1"}, "sku", "is missing"),
        ({"sku": str(UUID(int=1)), "price": "1", "colour": 1}, "colour", "is no field of Line; it has sku"),
        ({"sku": 1, "price": "1"}, "sku", "must be UUID as text, not int"),
        ({"sku": "x", "price": "1"}, "sku", "is text that is no UUID"),
        ({"sku": str(UUID(int=1)), "price": "NaN"}, "price", "no Decimal"),
        ({"sku": str(UUID(int=1)), "price": "1", "count": "1"}, "count", "must be int, not str"),
    ],
)
def test_stored_data_that_does_not_fit_any_more_is_refused_by_name(
    data: dict[str, Any], path: str, message: str
) -> None:
    with pytest.raises(InvalidPayload) as caught:
        load(data, Line)
    assert caught.value.field == f"payload.{path}"
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("due", "2026-01-01T00:00:00"),
        ("due", "2026-01-01T00:00:00+00:00[No/Where]"),
        ("due", "2026-01-01T00:00:00+00:00[../../etc/passwd]"),
        ("day", "yesterday"),
        ("grace", "soon"),
        ("colour", "green"),
        ("colour", 1),
        ("level", True),
        ("shape", "CIRCLE"),
        ("mode", 1),
    ],
)
def test_broken_stored_text_is_refused_by_name(name: str, value: object) -> None:
    data = dump(invoice(), Invoice)
    with pytest.raises(InvalidPayload) as caught:
        load({**data, name: value}, Invoice)
    assert caught.value.field == f"payload.{name}"


def test_rd_01_a_field_that_was_added_with_a_default_is_filled_in() -> None:
    assert load({"sku": str(UUID(int=1)), "price": "1"}, Line) == Line(UUID(int=1), Decimal(1), 1)


def test_a_dict_stands_for_the_fields_as_values_or_in_their_json_form() -> None:
    line = Line(UUID(int=1), Decimal("1.10"), 2)
    dumped = dump(line, Line)
    assert dump({"sku": line.sku, "price": "1.10", "count": 2}, Line) == dumped
    assert dump(dumped, Line) == dumped
    with pytest.raises(InvalidPayload, match=r"payload\.sku: is missing"):
        dump(None, Line)
    with pytest.raises(InvalidPayload, match=r"payload\.price: must be Decimal, not float"):
        dump({"sku": line.sku, "price": 1.1}, Line)


def test_what_the_dataclass_itself_refuses_is_said() -> None:
    @dataclass(frozen=True)
    class Range:
        low: int
        high: int

        def __post_init__(self) -> None:
            if self.low > self.high:
                raise ValueError("low is above high")

    with pytest.raises(InvalidPayload, match="payload: Range refused it: low is above high"):
        load({"low": 2, "high": 1}, Range)


@dataclass
class Scaled:
    amount: int

    def __post_init__(self) -> None:
        self.amount *= 100


@dataclass
class Trimmed:
    name: str
    length: int = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.name.strip()
        self.length = len(self.name)


@dataclass(eq=False)
class Order:
    lines: list[Scaled]


@dataclass
class Hidden:
    name: str
    secret: InitVar[str]


def test_pl_06_a_dataclass_that_changes_what_it_is_made_of_comes_back_equal_or_is_refused() -> None:
    assert round_trip(Trimmed(" x "), Trimmed) == Trimmed("x")
    for payload in (Scaled(1), Order([Scaled(1)])):
        with pytest.raises(InvalidPayload, match="would not come back equal"):
            dump(payload, type(payload))
    late = Trimmed("x")
    late.length = 7
    with pytest.raises(InvalidPayload, match="init=False"):
        dump(late, Trimmed)


def test_pl_06_what_only_the_making_of_a_dataclass_is_told_is_refused() -> None:
    with pytest.raises(NotConfigured, match="secret is an InitVar"):
        dump(Hidden("x", "y"), Hidden)


def test_a_dataclass_that_contains_itself_is_refused() -> None:
    @dataclass
    class Node:
        next: Any = None

    node = Node()
    node.next = {"a": [node]}
    with pytest.raises(InvalidPayload, match=r"payload\.next\.a\[0\]: is a Node"):
        encode(dump(node, Node), limit=LIMIT)
    chain = invoice()
    object.__setattr__(chain, "previous", chain)
    with pytest.raises(InvalidPayload, match="contains itself"):
        dump(chain, Invoice)


@pytest.mark.parametrize("annotation", [set[int], bytes, dict[int, str], UUID | date, Literal[b"x"], complex])
def test_an_annotation_that_json_cannot_carry_is_named(annotation: Any) -> None:
    @dataclass
    class Wrong:
        value: Any

    Wrong.__annotations__["value"] = annotation
    with pytest.raises(NotConfigured, match="Wrong cannot be a payload"):
        dump(Wrong(1), Wrong)
