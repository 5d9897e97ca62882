import type { JsonValue } from "@bufbuild/protobuf";
import type { Case } from "./case.ts";
import { http, invalid, json } from "./case.ts";

function query(rule: string, text: string, sink: JsonValue): Case {
  return { rule, request: `GET /v1/query?${text}`, want: { rpc: "Query", sink } };
}

function refused(rule: string, text: string, message: string): Case {
  return { rule, request: `GET /v1/query?${text}`, want: invalid(message) };
}

/** What a query may contain apart from one field's values. */
export const queryCases: readonly Case[] = [
  // The query syntax.
  refused("RFC 3986 §2.1: an escape in a name that is not hexadecimal", "f%zzString=a", "malformed"),
  refused("RFC 3986 §2.1: a bad escape in an unknown parameter", "x=%zz", "malformed"),
  // Names.
  refused("an unknown parameter is refused", "x=1", 'unknown query parameter "x"'),
  refused("all unknown parameters are named", "x=1&fString=a&y=2", 'unknown query parameters "x", "y"'),
  refused(
    "the name of an inherited property is unknown",
    "__proto__=a&constructor=b",
    'unknown query parameters "__proto__", "constructor"',
  ),
  refused("a trailing dot is unknown", "nested.=a", 'unknown query parameter "nested."'),
  refused("a leading dot is unknown", ".fString=a", 'unknown query parameter ".fString"'),
  refused("a space is part of a name", "+fString=a", 'unknown query parameter " fString"'),
  // Repeated fields.
  query(`${http}: a repeated field of enums`, "colors=COLOR_RED&colors=2", { colors: ["COLOR_RED", "COLOR_GREEN"] }),
  query(`${http}: a repeated field of Timestamps`, "times=2024-01-01T00:00:00Z", { times: ["2024-01-01T00:00:00Z"] }),
  query(`${http}: a repeated field of wrappers`, "words=a&words=", { words: ["a", ""] }),
  refused("a value of a repeated field", "ids=1&ids=01", '"ids" is not valid: "01" is not an int64'),
  // Nested messages.
  refused("no path through a map", "labels.a=b", "labels is not a message"),
  refused("no path through a Struct", "struct.a=b", 'unknown query parameter "struct.a"'),
  refused("no path deeper than 100 names", `${"child.".repeat(100)}fString=a`, "unknown query parameter"),
  query(
    "a path of 100 names",
    `${"child.".repeat(99)}fBool=true`,
    Array.from({ length: 99 }).reduce<JsonValue>((inner) => ({ child: inner }), { fBool: true }),
  ),
  // Types without a string form.
  refused(`${http}: no messages`, "nested=a", '"nested" is not valid: its field cannot be set in a query'),
  refused(`${http}: no Value`, "value=1", '"value" is not valid: its field cannot be set in a query'),
  refused(`${http}: no ListValue`, "list=[]", '"list" is not valid: its field cannot be set in a query'),
  refused(`${http}: no Empty`, "empty=", '"empty" is not valid: its field cannot be set in a query'),
  // A well-known type with a special form has no other form.
  refused(`${json}: no path through a Timestamp`, "time.seconds=7", 'unknown query parameter "time.seconds"'),
  refused(`${json}: no path through a Duration`, "duration.nanos=7", 'unknown query parameter "duration.nanos"'),
  refused(`${json}: no path through a wrapper`, "wInt64.value=7", 'unknown query parameter "wInt64.value"'),
  refused(`${json}: no path through a FieldMask`, "mask.paths=a", 'unknown query parameter "mask.paths"'),
  refused(`${json}: no path through an Any`, "any.typeUrl=a", 'unknown query parameter "any.typeUrl"'),
  refused(`${json}: no path through a Value`, "value.stringValue=a", 'unknown query parameter "value.stringValue"'),
  refused(
    `${json}: a FieldMask of something else`,
    "mask=foo-1",
    '"mask" is not valid: "foo-1" is not a comma-separated list of field paths',
  ),
  query(`${json}: the largest float, a little above`, "fFloat=3.4028235e38", { fFloat: 3.4028235e38 }),
  // Presence.
  query(
    "presence: a wrapper set to zero",
    "wInt64=0&wBool=false&wString=&wBytes=&wDouble=0&wUint32=0&wInt32=0&wUint64=0&wFloat=0",
    { wInt64: "0", wBool: false, wString: "", wBytes: "", wDouble: 0, wUint32: 0, wInt32: 0, wUint64: "0", wFloat: 0 },
  ),
  query("google.protobuf.NullValue is an enum", "nullValue=NULL_VALUE", {}),
  // Oneofs.
  query("a member of a oneof: wrapper", "choice_wrapper=", { choiceWrapper: "" }),
  query("a member of a oneof: bytes", "choiceBytes=QQ", { choiceBytes: "QQ==" }),
  refused(
    "one member of a oneof",
    "choiceText=a&choiceNumber=1",
    '"choiceNumber" is not valid: cannot be set together with choice_text',
  ),
  refused(
    "one member of a oneof, also with nested fields",
    "choiceText=a&choiceNested.text=b",
    '"choiceNested.text" is not valid: cannot be set together with choice_text',
  ),
  refused(
    "one member of a oneof, also with nested fields first",
    "choiceNested.text=b&choiceText=a",
    '"choiceText" is not valid: cannot be set together with choice_nested',
  ),
  // Duplicates.
  refused("a field once", "fString=a&fString=b", '"fString" is set more than once'),
  refused("a field once, even with the same value", "fInt64=7&fInt64=7", '"fInt64" is set more than once'),
  refused("a field once, by any of its names", "fString=a&f_string=b", '"f_string" is set more than once'),
  refused("a field once, by its proto name", "customName=a&odd_name=b", '"odd_name" is set more than once'),
  refused("a nested field once", "nested.text=a&nested.text=b", '"nested.text" is set more than once'),
  refused("a member of a oneof once", "choiceText=a&choiceText=b", '"choiceText" is set more than once'),
  refused("an optional field once", "maybeInt64=1&maybeInt64=2", '"maybeInt64" is set more than once'),
  // Path before query.
  {
    rule: "the query never sets a path field",
    request: "GET /v1/int64/7?fInt64=8",
    want: invalid("is already set by the path"),
  },
  {
    rule: "the query never sets a path field, by proto name",
    request: "GET /v1/int64/7?f_int64=8",
    want: invalid("is already set by the path"),
  },
  {
    rule: "the query never sets a path field, not even to the same value",
    request: "GET /v1/int64/7?f_int64=7",
    want: invalid("is already set by the path"),
  },
  {
    rule: "the query never sets a path field, not even to an invalid value",
    request: "GET /v1/int64/7?f_int64=abc",
    want: invalid("is already set by the path"),
  },
  {
    rule: "the query sets other fields of a message with a path field",
    request: "GET /v1/trees/oak?nested.number=7",
    want: { rpc: "Segments", sink: { nested: { text: "trees/oak", number: "7" } } },
  },
  {
    rule: "the query never sets a nested path field",
    request: "GET /v1/trees/oak?nested.text=a",
    want: invalid("is already set by the path"),
  },
  {
    rule: "the path and the query set members of the same oneof",
    request: "GET /v1/choice/7?choiceText=a",
    want: invalid("cannot be set together with choice_number"),
  },
  {
    rule: "the path and the query set the same member of a oneof",
    request: "GET /v1/choice/7?choice_number=7",
    want: invalid("is already set by the path"),
  },
];
