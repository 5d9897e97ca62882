import type { JsonValue } from "@bufbuild/protobuf";
import { type Case, http, invalid, json } from "./case.ts";

function query(rule: string, text: string, sink: JsonValue): Case {
  return { rule, request: `GET /v1/query?${text}`, want: { rpc: "Query", sink } };
}

function refused(rule: string, text: string, message: string): Case {
  return { rule, request: `GET /v1/query?${text}`, want: invalid(message) };
}

/** What a query may contain apart from one field's values. */
// oxfmt-ignore
export const queryCases: readonly Case[] = [
  // The query syntax.
  refused("RFC 3986 §2.1: an invalid escape in a name is refused", "f%zzString=a", "malformed"),
  refused("RFC 3986 §2.1: an invalid escape in an unknown parameter is refused", "x=%zz", "malformed"),
  // Names.
  refused("an unknown parameter is refused", "x=1", 'unknown query parameter "x"'),
  refused("the error names all unknown parameters", "x=1&fString=a&y=2", 'unknown query parameters "x", "y"'),
  refused("the name of an inherited property is unknown", "__proto__=a&constructor=b",
    'unknown query parameters "__proto__", "constructor"'),
  refused("a trailing dot is unknown", "nested.=a", 'unknown query parameter "nested."'),
  refused("a leading dot is unknown", ".fString=a", 'unknown query parameter ".fString"'),
  refused("a space is part of a name", "+fString=a", 'unknown query parameter " fString"'),
  // Repeated fields.
  query(`${http}: repeated enums may be set`, "colors=COLOR_RED&colors=2", { colors: ["COLOR_RED", "COLOR_GREEN"] }),
  query(`${http}: repeated Timestamps may be set`, "times=2024-01-01T00:00:00Z", { times: ["2024-01-01T00:00:00Z"] }),
  query(`${http}: repeated wrappers may be set`, "words=a&words=", { words: ["a", ""] }),
  refused("an invalid value of a repeated field is refused", "ids=1&ids=01",
    '"ids" is not valid: "01" is not an int64'),
  // Nested messages.
  refused("a path into a map is refused", "labels.a=b", "labels is not a message"),
  refused("a path into a Struct is refused", "struct.a=b", 'unknown query parameter "struct.a"'),
  refused("a path of more than 100 names is refused", `${"child.".repeat(100)}fString=a`, "unknown query parameter"),
  query("a path of 100 names", `${"child.".repeat(99)}fBool=true`,
    Array.from({ length: 99 }).reduce<JsonValue>((inner) => ({ child: inner }), { fBool: true })),
  // Types without a string form.
  refused(`${http}: a message cannot be set`, "nested=a", '"nested" is not valid: its field cannot be set in a query'),
  refused(`${http}: a Value cannot be set`, "value=1", '"value" is not valid: its field cannot be set in a query'),
  refused(`${http}: a ListValue cannot be set`, "list=[]", '"list" is not valid: its field cannot be set in a query'),
  refused(`${http}: an Empty cannot be set`, "empty=", '"empty" is not valid: its field cannot be set in a query'),
  // A well-known type with a special form has no other form.
  refused(`${json}: a path into a Timestamp is refused`, "time.seconds=7", 'unknown query parameter "time.seconds"'),
  refused(`${json}: a path into a Duration is refused`, "duration.nanos=7", 'unknown query parameter "duration.nanos"'),
  refused(`${json}: a path into a wrapper is refused`, "wInt64.value=7", 'unknown query parameter "wInt64.value"'),
  refused(`${json}: a path into a FieldMask is refused`, "mask.paths=a", 'unknown query parameter "mask.paths"'),
  refused(`${json}: a path into an Any is refused`, "any.typeUrl=a", 'unknown query parameter "any.typeUrl"'),
  refused(`${json}: a path into a Value is refused`, "value.stringValue=a",
    'unknown query parameter "value.stringValue"'),
  refused(`${json}: an invalid FieldMask is refused`, "mask=foo-1",
    '"mask" is not valid: "foo-1" is not a comma-separated list of field paths'),
  query(`${json}: a float that rounds to the largest float is accepted`, "fFloat=3.4028235e38",
    { fFloat: 3.4028235e38 }),
  // Presence.
  query("a wrapper that is set to zero is present",
    "wInt64=0&wBool=false&wString=&wBytes=&wDouble=0&wUint32=0&wInt32=0&wUint64=0&wFloat=0",
    { wInt64: "0", wBool: false, wString: "", wBytes: "", wDouble: 0, wUint32: 0, wInt32: 0, wUint64: "0", wFloat: 0 }),
  query("google.protobuf.NullValue is an enum", "nullValue=NULL_VALUE", {}),
  // Oneofs.
  query("a oneof member may be a wrapper", "choice_wrapper=", { choiceWrapper: "" }),
  query("a oneof member may be bytes", "choiceBytes=QQ", { choiceBytes: "QQ==" }),
  refused("a query must not set two oneof members", "choiceText=a&choiceNumber=1",
    '"choiceNumber" is not valid: cannot be set together with choice_text'),
  refused("a query must not set two oneof members, one by a nested field", "choiceText=a&choiceNested.text=b",
    '"choiceNested.text" is not valid: cannot be set together with choice_text'),
  refused("a query must not set two oneof members, the first by a nested field", "choiceNested.text=b&choiceText=a",
    '"choiceText" is not valid: cannot be set together with choice_nested'),
  // Duplicates.
  refused("a field must not be set twice", "fString=a&fString=b", '"fString" is set more than once'),
  refused("a field must not be set twice with one value", "fInt64=7&fInt64=7", '"fInt64" is set more than once'),
  refused("a field must not be set by both JSON name and proto name", "fString=a&f_string=b",
    '"f_string" is set more than once'),
  refused("a field must not be set by both custom JSON name and proto name", "customName=a&odd_name=b",
    '"odd_name" is set more than once'),
  refused("a nested field must not be set twice", "nested.text=a&nested.text=b", '"nested.text" is set more than once'),
  refused("a oneof member must not be set twice", "choiceText=a&choiceText=b", '"choiceText" is set more than once'),
  refused("an optional field must not be set twice", "maybeInt64=1&maybeInt64=2", '"maybeInt64" is set more than once'),
  // Path before query.
  { rule: "the query must not set a path field", request: "GET /v1/int64/7?fInt64=8",
    want: invalid("is already set by the path") },
  { rule: "the query must not set a path field by proto name", request: "GET /v1/int64/7?f_int64=8",
    want: invalid("is already set by the path") },
  { rule: "the query must not repeat a path field with an equal value", request: "GET /v1/int64/7?f_int64=7",
    want: invalid("is already set by the path") },
  { rule: "the query must not set a path field to an invalid value", request: "GET /v1/int64/7?f_int64=abc",
    want: invalid("is already set by the path") },
  { rule: "the query may set fields next to a nested path field", request: "GET /v1/trees/oak?nested.number=7",
    want: { rpc: "Segments", sink: { nested: { text: "trees/oak", number: "7" } } } },
  { rule: "the query must not set a nested path field", request: "GET /v1/trees/oak?nested.text=a",
    want: invalid("is already set by the path") },
  { rule: "the path and the query set members of the same oneof", request: "GET /v1/choice/7?choiceText=a",
    want: invalid("cannot be set together with choice_number") },
  { rule: "the path and the query set the same member of a oneof", request: "GET /v1/choice/7?choice_number=7",
    want: invalid("is already set by the path") },
];
