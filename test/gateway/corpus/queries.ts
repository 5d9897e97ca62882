import type { JsonValue } from "@bufbuild/protobuf";
import type { Row } from "./row.ts";
import { http, invalid, json } from "./row.ts";

function query(rule: string, text: string, sink: JsonValue): Row {
  return { rule, request: `GET /v1/query?${text}`, want: { rpc: "Query", sink } };
}

function refused(rule: string, text: string, message: string): Row {
  return { rule, request: `GET /v1/query?${text}`, want: invalid(message) };
}

/** What a query may contain apart from the values of one field. */
export const queryRows: readonly Row[] = [
  // The text of a query.
  query("WHATWG URL §5.1: empty pieces are none", "&&fString=a&", { fString: "a" }),
  query("WHATWG URL §5.1: an escaped + is a plus", "maybeString=a%2Bb", { maybeString: "a+b" }),
  query("WHATWG URL §5.1: no = is an empty value", "maybeString", { maybeString: "" }),
  query("an empty value is the empty string", "maybeString=", { maybeString: "" }),
  query("a semicolon is data", "fString=a;fBool=true", { fString: "a;fBool=true" }),
  query("an escaped & is data", "fString=a%26fBool=true", { fString: "a&fBool=true" }),
  query("a name is decoded", "f%53tring=a", { fString: "a" }),
  query("an escape is decoded once", "fString=%2525", { fString: "%25" }),
  query("RFC 3629 §3: UTF-8", "maybeString=%F0%9F%8C%B1", { maybeString: "🌱" }),
  refused("RFC 3986 §2.1: a cut escape", "fString=%", "malformed"),
  refused("RFC 3986 §2.1: an escape that is not hexadecimal", "fString=%zz", "malformed"),
  refused("RFC 3986 §2.1: an escape in a name that is not hexadecimal", "f%zzString=a", "malformed"),
  refused("RFC 3629 §3: not UTF-8", "fString=%ff", "malformed"),
  refused("RFC 3629 §3: a surrogate", "fString=%ed%a0%80", "malformed"),
  refused("RFC 3986 §2.1: a bad escape in a parameter nobody knows", "x=%zz", "malformed"),
  // Names.
  refused("an unknown parameter is refused", "x=1", 'unknown query parameter "x"'),
  refused("all unknown parameters are named", "x=1&fString=a&y=2", 'unknown query parameters "x", "y"'),
  refused("a name is case-sensitive", "FString=a", 'unknown query parameter "FString"'),
  refused("an empty name is unknown", "=a", 'unknown query parameter ""'),
  refused("a system parameter is unknown", "$alt=json", 'unknown query parameter "$alt"'),
  refused(
    "a name of objects is unknown",
    "__proto__=a&constructor=b",
    'unknown query parameters "__proto__", "constructor"',
  ),
  refused("brackets are part of a name", "tags[]=a", 'unknown query parameter "tags[]"'),
  refused("an index is part of a name", "tags[0]=a", 'unknown query parameter "tags[0]"'),
  refused("a name of a oneof is no field", "choice=a", 'unknown query parameter "choice"'),
  refused("a trailing dot is unknown", "nested.=a", 'unknown query parameter "nested."'),
  refused("a leading dot is unknown", ".fString=a", 'unknown query parameter ".fString"'),
  refused("a space is part of a name", "+fString=a", 'unknown query parameter " fString"'),
  // Repeated fields.
  query(`${http}: a repeated field`, "ids=1&ids=2&ids=1", { ids: ["1", "2", "1"] }),
  query(`${http}: a repeated field, by both names`, "longTexts=1&long_texts=2", { longTexts: ["1", "2"] }),
  query(`${http}: a repeated field of strings`, "tags=a&tags=&tags=b,c", { tags: ["a", "", "b,c"] }),
  query(`${http}: a repeated field of enums`, "colors=COLOR_RED&colors=2", { colors: ["COLOR_RED", "COLOR_GREEN"] }),
  query(`${http}: a repeated field of bytes`, "blobs=QQ&blobs=", { blobs: ["QQ==", ""] }),
  query(`${http}: a repeated field of doubles`, "doubles=1&doubles=NaN", { doubles: [1, "NaN"] }),
  query(`${http}: a repeated field of Timestamps`, "times=2024-01-01T00:00:00Z", { times: ["2024-01-01T00:00:00Z"] }),
  query(`${http}: a repeated field of wrappers`, "words=a&words=", { words: ["a", ""] }),
  query("the order of others does not matter", "tags=a&fBool=true&tags=b", { tags: ["a", "b"], fBool: true }),
  refused("a value of a repeated field", "ids=1&ids=01", '"ids": "01" is not an int64'),
  refused(`${http}: no lists of values`, "ids=1,2", '"ids": "1,2" is not an int64'),
  // Nested messages.
  query(`${http}: a deeper field`, "nested.inner.inner.text=a", { nested: { inner: { inner: { text: "a" } } } }),
  query(`${http}: a recursive message`, "child.child.child.f_int64=7", {
    child: { child: { child: { fInt64: "7" } } },
  }),
  refused("no path through a list", "nesteds.text=a", 'unknown query parameter "nesteds.text"'),
  refused("no path through a map", "labels.a=b", 'unknown query parameter "labels.a"'),
  refused("no path through a scalar", "fString.x=a", 'unknown query parameter "fString.x"'),
  refused("no path through a Struct", "struct.a=b", 'unknown query parameter "struct.a"'),
  refused("an unknown nested field", "nested.x=1", 'unknown query parameter "nested.x"'),
  refused("no path deeper than 100 names", `${"child.".repeat(100)}fString=a`, "unknown query parameter"),
  query(
    "a path of 100 names",
    `${"child.".repeat(99)}fBool=true`,
    Array.from({ length: 99 }).reduce<JsonValue>((inner) => ({ child: inner }), { fBool: true }),
  ),
  // What has no text form.
  refused(`${http}: no messages`, "nested=a", '"nested": cannot be set by a query parameter'),
  refused(`${http}: no repeated messages`, "nesteds=a", '"nesteds": cannot be set by a query parameter'),
  refused(`${http}: no maps`, "labels=a", '"labels": cannot be set by a query parameter'),
  refused(`${http}: no Struct`, "struct={}", '"struct": cannot be set by a query parameter'),
  refused(`${http}: no Value`, "value=1", '"value": cannot be set by a query parameter'),
  refused(`${http}: no ListValue`, "list=[]", '"list": cannot be set by a query parameter'),
  refused(`${http}: no Any`, "any={}", '"any": cannot be set by a query parameter'),
  refused(`${http}: no Empty`, "empty=", '"empty": cannot be set by a query parameter'),
  // A well-known type with a form of its own has no other.
  refused(`${json}: no path through a Timestamp`, "time.seconds=7", 'unknown query parameter "time.seconds"'),
  refused(`${json}: no path through a Duration`, "duration.nanos=7", 'unknown query parameter "duration.nanos"'),
  refused(`${json}: no path through a wrapper`, "wInt64.value=7", 'unknown query parameter "wInt64.value"'),
  refused(`${json}: no path through a FieldMask`, "mask.paths=a", 'unknown query parameter "mask.paths"'),
  refused(`${json}: no path through an Any`, "any.typeUrl=a", 'unknown query parameter "any.typeUrl"'),
  refused(`${json}: no path through a Value`, "value.stringValue=a", 'unknown query parameter "value.stringValue"'),
  refused(`${json}: a FieldMask of something else`, "mask=foo-1", '"mask": "foo-1" is not a list of field paths'),
  query(`${json}: the largest float, a little above`, "fFloat=3.4028235e38", { fFloat: 3.4028234663852886e38 }),
  // Presence.
  query("presence: set to zero", "maybeInt64=0&maybeBool=false&maybeString=&maybeEnum=0", {
    maybeInt64: "0",
    maybeBool: false,
    maybeString: "",
    maybeEnum: "COLOR_UNSPECIFIED",
  }),
  query(
    "presence: a wrapper set to zero",
    "wInt64=0&wBool=false&wString=&wBytes=&wDouble=0&wUint32=0&wInt32=0&wUint64=0&wFloat=0",
    { wInt64: "0", wBool: false, wString: "", wBytes: "", wDouble: 0, wUint32: 0, wInt32: 0, wUint64: "0", wFloat: 0 },
  ),
  query("google.protobuf.NullValue is an enum", "nullValue=NULL_VALUE", {}),
  // Oneofs.
  query("a member of a oneof", "choiceText=", { choiceText: "" }),
  query("a member of a oneof: enum", "choiceEnum=COLOR_RED", { choiceEnum: "COLOR_RED" }),
  query("a member of a oneof: message", "choiceNested.text=a&choiceNested.number=7", {
    choiceNested: { text: "a", number: "7" },
  }),
  query("a member of a oneof: wrapper", "choice_wrapper=", { choiceWrapper: "" }),
  query("a member of a oneof: bytes", "choiceBytes=QQ", { choiceBytes: "QQ==" }),
  refused(
    "one member of a oneof",
    "choiceText=a&choiceNumber=1",
    '"choiceNumber": cannot be set together with choice_text',
  ),
  refused(
    "one member of a oneof, also with nested fields",
    "choiceText=a&choiceNested.text=b",
    '"choiceNested.text": cannot be set together with choice_text',
  ),
  refused(
    "one member of a oneof, also with nested fields first",
    "choiceNested.text=b&choiceText=a",
    '"choiceText": cannot be set together with choice_nested',
  ),
  // Twice.
  refused("a field once", "fString=a&fString=b", '"fString": is set more than once'),
  refused("a field once, also with the same value", "fInt64=7&fInt64=7", '"fInt64": is set more than once'),
  refused("a field once, by whatever name", "fString=a&f_string=b", '"f_string": is set more than once'),
  refused("a field once, by a name of its own", "customName=a&odd_name=b", '"odd_name": is set more than once'),
  refused("a nested field once", "nested.text=a&nested.text=b", '"nested.text": is set more than once'),
  refused("a member of a oneof once", "choiceText=a&choiceText=b", '"choiceText": is set more than once'),
  refused("an optional field once", "maybeInt64=1&maybeInt64=2", '"maybeInt64": is set more than once'),
  // Path before query.
  {
    rule: "the query never sets a path field",
    request: "GET /v1/int64/7?fInt64=8",
    want: invalid("is bound by the path"),
  },
  {
    rule: "the query never sets a path field, by proto name",
    request: "GET /v1/int64/7?f_int64=8",
    want: invalid("is bound by the path"),
  },
  {
    rule: "the query never sets a path field, not even to the same",
    request: "GET /v1/int64/7?f_int64=7",
    want: invalid("is bound by the path"),
  },
  {
    rule: "the query never sets a path field, not even badly",
    request: "GET /v1/int64/7?f_int64=abc",
    want: invalid("is bound by the path"),
  },
  {
    rule: "the query sets what the path does not",
    request: "GET /v1/int64/7?fString=a",
    want: { rpc: "Types", sink: { fInt64: "7", fString: "a" } },
  },
  {
    rule: "the query sets other fields of a message the path reaches into",
    request: "GET /v1/trees/oak?nested.number=7",
    want: { rpc: "Segments", sink: { nested: { text: "trees/oak", number: "7" } } },
  },
  {
    rule: "the query never sets a nested path field",
    request: "GET /v1/trees/oak?nested.text=a",
    want: invalid("is bound by the path"),
  },
  {
    rule: "the path and the query are of one oneof",
    request: "GET /v1/choice/7?choiceText=a",
    want: invalid("cannot be set together with choice_number"),
  },
  {
    rule: "the path and the query are of one oneof, same member",
    request: "GET /v1/choice/7?choice_number=7",
    want: invalid("is bound by the path"),
  },
];
