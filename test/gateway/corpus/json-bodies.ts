import type { JsonValue } from "@bufbuild/protobuf";
import type { Row } from "./row.ts";
import { invalid, json } from "./row.ts";

function create(rule: string, body: string, sink: JsonValue): Row {
  return { rule, request: "POST /v1/sinks", body, want: { rpc: "Create", sink } };
}

function refused(rule: string, body: string | Uint8Array, message: string): Row {
  return { rule, request: "POST /v1/sinks", body, want: invalid(message) };
}

const mapped: readonly Row[] = [
  create(`${json}: an empty object`, "{}", {}),
  create("RFC 8259 §2: white space", ' \t\r\n{ "fString" : "a" } \n', { fString: "a" }),
  create(`${json}: int64 from a string`, '{"fInt64":"9007199254740993"}', { fInt64: "9007199254740993" }),
  create(`${json}: int64 from a number, exactly`, '{"fInt64":9007199254740993}', { fInt64: "9007199254740993" }),
  create(`${json}: int64 from a number with an exponent`, '{"fInt64":1e3}', { fInt64: "1000" }),
  create(`${json}: int64 from a number with a zero fraction`, '{"fInt64":7.0}', { fInt64: "7" }),
  create(`${json}: int64 minimum`, '{"fInt64":-9223372036854775808}', { fInt64: "-9223372036854775808" }),
  create(`${json}: uint64 maximum`, '{"fUint64":18446744073709551615}', { fUint64: "18446744073709551615" }),
  create(`${json}: int32 from a string`, '{"fInt32":"-7"}', { fInt32: -7 }),
  create(`${json}: double names`, '{"fDouble":"NaN","fFloat":"-Infinity"}', { fDouble: "NaN", fFloat: "-Infinity" }),
  create(`${json}: double from a string`, '{"fDouble":"1.5"}', { fDouble: 1.5 }),
  create(`${json}: float in the precision of a float`, '{"fFloat":0.1,"wFloat":"16777217"}', {
    fFloat: 0.10000000149011612,
    wFloat: 16777216,
  }),
  create(`${json}: bool`, '{"fBool":true}', { fBool: true }),
  create(`${json}: bytes, url-safe and bare`, '{"fBytes":"-_8"}', { fBytes: "+/8=" }),
  create(`${json}: enum by name`, '{"fEnum":"COLOR_RED"}', { fEnum: "COLOR_RED" }),
  create(`${json}: enum by number`, '{"fEnum":2}', { fEnum: "COLOR_GREEN" }),
  create(`${json}: enum by a number nobody knows`, '{"fEnum":17}', { fEnum: 17 }),
  create(`${json}: proto names`, '{"f_string":"a","maybe_int64":1}', { fString: "a", maybeInt64: "1" }),
  create(`${json}: a JSON name of its own`, '{"customName":"a"}', { customName: "a" }),
  create(
    `${json}: null is absent`,
    '{"fString":null,"ids":null,"nested":null,"wInt64":null,"labels":null,"maybeInt64":null}',
    {},
  ),
  create(`${json}: null of a Value is a value`, '{"value":null}', { value: null }),
  create(`${json}: presence`, '{"maybeString":"","maybeInt64":0}', { maybeString: "", maybeInt64: "0" }),
  create(`${json}: lists`, '{"ids":[1,"2"],"tags":[],"colors":["COLOR_RED",2]}', {
    ids: ["1", "2"],
    colors: ["COLOR_RED", "COLOR_GREEN"],
  }),
  create(`${json}: maps`, '{"labels":{"a":"b","":"c"},"counts":{"true":1},"nestedById":{"-7":{"text":"a"}}}', {
    labels: { a: "b", "": "c" },
    counts: { true: 1 },
    nestedById: { "-7": { text: "a" } },
  }),
  create(
    "a map key named like the prototype is a key",
    '{"labels":{"__proto__":"a"}}',
    JSON.parse('{"labels":{"__proto__":"a"}}'),
  ),
  create(`${json}: messages`, '{"nested":{"text":"a","inner":{"flag":false}}}', {
    nested: { text: "a", inner: { flag: false } },
  }),
  create(`${json}: a recursive message`, '{"child":{"child":{"fString":"a"}}}', { child: { child: { fString: "a" } } }),
  create(`${json}: wrappers`, '{"wInt64":"0","wString":"","wBool":false}', { wInt64: "0", wString: "", wBool: false }),
  create(`${json}: Timestamp`, '{"time":"2024-02-29T00:00:00.123456789+01:00"}', {
    time: "2024-02-28T23:00:00.123456789Z",
  }),
  create(`${json}: Duration`, '{"duration":"-1.5s"}', { duration: "-1.500s" }),
  create(`${json}: FieldMask`, '{"mask":"fooBar,a.b"}', { mask: "fooBar,a.b" }),
  create(`${json}: Struct`, '{"struct":{"a":[1,null,"x",true,{"b":1.5}]}}', {
    struct: { a: [1, null, "x", true, { b: 1.5 }] },
  }),
  create(`${json}: Value`, '{"value":[1,{"a":null}]}', { value: [1, { a: null }] }),
  create(`${json}: ListValue`, '{"list":[1,[2]]}', { list: [1, [2]] }),
  create(`${json}: Any`, '{"any":{"@type":"type.googleapis.com/kitchensink.v1.Nested","text":"a"}}', {
    any: { "@type": "type.googleapis.com/kitchensink.v1.Nested", text: "a" },
  }),
  create(`${json}: Any, the type last`, '{"any":{"text":"a","@type":"type.googleapis.com/kitchensink.v1.Nested"}}', {
    any: { "@type": "type.googleapis.com/kitchensink.v1.Nested", text: "a" },
  }),
  create(`${json}: an empty Any`, '{"any":{}}', { any: {} }),
  create(`${json}: Empty`, '{"empty":{}}', { empty: {} }),
  create(`${json}: a member of a oneof`, '{"choiceNumber":"0"}', { choiceNumber: "0" }),
  create(`${json}: NullValue in a oneof`, '{"choiceNull":null}', { choiceNull: null }),
  create(`${json}: null is no member of a oneof`, '{"choiceText":null,"choiceNumber":1}', { choiceNumber: "1" }),
  create("RFC 8259 §7: escapes", '{"fString":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83c\\udf31"}', {
    fString: '"\\/\b\f\n\r\té🌱',
  }),
  create("RFC 8259 §8.1: UTF-8", '{"fString":"é🌱"}', { fString: "é🌱" }),
  create("RFC 8259 §8.3: keys compare after their escapes", '{"f\\u0053tring":"a"}', { fString: "a" }),
];

const notMapped: readonly Row[] = [
  refused("RFC 8259 §2: a trailing comma", '{"fString":"a",}', "not JSON"),
  refused("RFC 8259 §2: text behind the value", "{} x", "not JSON"),
  refused("RFC 8259 §2: two values", "{}{}", "not JSON"),
  refused("RFC 8259 §2: cut", '{"fString":"a"', "not JSON"),
  refused("RFC 8259 §2: white space alone", " ", "not JSON"),
  refused("RFC 8259 §4: a bare key", "{fString:1}", "not JSON"),
  refused("RFC 8259 §6: a leading zero", '{"fInt64":07}', "not JSON"),
  refused("RFC 8259 §6: a plus sign", '{"fInt64":+7}', "not JSON"),
  refused("RFC 8259 §6: hexadecimal", '{"fInt64":0x7}', "not JSON"),
  refused("RFC 8259 §6: NaN", '{"fDouble":NaN}', "not JSON"),
  refused("RFC 8259 §7: a line feed in a string", '{"fString":"a\nb"}', "not JSON"),
  refused("RFC 8259 §7: an unknown escape", '{"fString":"\\x41"}', "not JSON"),
  refused("RFC 8259 §8.1: not UTF-8", new Uint8Array([0x7b, 0xff, 0x7d]), "not UTF-8"),
  refused("RFC 8259 §8.1: a byte order mark", "\uFEFF{}", "not JSON"),
  refused("RFC 8259 §8.2: a lone surrogate", '{"fString":"\\ud800"}', "surrogate"),
  refused("RFC 7493 §2.3: a key twice", '{"fString":"a","fString":"b"}', "more than once"),
  refused("a field once, by whatever name", '{"fString":"a","f_string":"b"}', "more than once"),
  refused("RFC 7493 §2.3: an unknown key twice", '{"x":1,"x":1}', "more than once"),
  refused("a map key once", '{"labels":{"a":"b","a":"c"}}', "more than once"),
  refused("nesting has a limit", `{"value":${"[".repeat(101)}${"]".repeat(101)}}`, "nested deeper"),
  refused("nesting has a limit, also where nobody looks", `{"x":${"[".repeat(20_000)}`, "nested deeper"),
  refused(`${json}: a message is an object`, "null", "an object"),
  refused(`${json}: a message is an object`, "[]", "an object"),
  refused(`${json}: a message is an object`, '"a"', "an object"),
  refused("unknown fields are refused", '{"x":1}', 'unknown field "x"'),
  refused("all unknown fields are named", '{"x":1,"nested":{"y":2},"z":[]}', 'unknown fields "x", "nested.y", "z"'),
  refused("names are case-sensitive", '{"FString":"a"}', 'unknown field "FString"'),
  refused("a name of objects is unknown", '{"__proto__":{"fString":"a"}}', 'unknown field "__proto__"'),
  refused(`${json}: int64 without leading zeros`, '{"fInt64":"007"}', 'f_int64: "007" is not an int64'),
  refused(`${json}: int64 without spaces`, '{"fInt64":" 7"}', "f_int64: "),
  refused(`${json}: int64 in decimal`, '{"fInt64":"0x7"}', "f_int64: "),
  refused(`${json}: int64 has no fraction`, '{"fInt64":1.5}', "f_int64: "),
  refused(`${json}: int64 in range`, '{"fInt64":9223372036854775808}', "f_int64: "),
  refused(`${json}: int64 is not empty`, '{"fInt64":""}', "f_int64: "),
  refused(`${json}: int64 is no bool`, '{"fInt64":true}', "f_int64: not an int64"),
  refused(`${json}: int32 in range`, '{"fInt32":2147483648}', "f_int32: "),
  refused(`${json}: uint32 in range`, '{"fUint32":-1}', "f_uint32: "),
  refused(`${json}: double in range`, '{"fDouble":1e309}', "f_double: "),
  refused(`${json}: float in range`, '{"fFloat":1e39}', "f_float: "),
  refused(`${json}: bool is no string`, '{"fBool":"true"}', "f_bool: "),
  refused(`${json}: string is no number`, '{"fString":7}', "f_string: "),
  refused(`${json}: bytes are base64`, '{"fBytes":"%"}', "f_bytes: "),
  refused(`${json}: an enum name nobody knows`, '{"fEnum":"COLOR_BLUE"}', "f_enum: "),
  refused(`${json}: an enum name is case-sensitive`, '{"fEnum":"color_red"}', "f_enum: "),
  refused(`${json}: an enum number is int32`, '{"fEnum":1e10}', "f_enum: "),
  refused(`${json}: null cannot be in a list or a map`, '{"ids":[null]}', "ids[0]: "),
  refused(`${json}: null is no value of a map`, '{"labels":{"a":null}}', 'labels["a"]: '),
  refused(`${json}: a list is an array`, '{"ids":"1"}', "ids: not an array"),
  refused(`${json}: a map is an object`, '{"labels":[]}', "labels: not an object"),
  refused(`${json}: a map key of its type`, '{"nestedById":{"x":{}}}', "nested_by_id: "),
  refused(`${json}: one member of a oneof`, '{"choiceText":"a","choiceNumber":1}', "cannot be set together"),
  refused(`${json}: Timestamp is RFC 3339`, '{"time":"yesterday"}', "time: "),
  refused(`${json}: Duration has a unit`, '{"duration":"1"}', "duration: "),
  refused(`${json}: FieldMask is lowerCamelCase`, '{"mask":"foo_bar"}', "mask: "),
  refused(`${json}: Any has a type`, '{"any":{"text":"a"}}', "any: "),
  refused(`${json}: Any has a known type`, '{"any":{"@type":"type.googleapis.com/x.Y"}}', "any: "),
  refused(
    "an error names the path of the field",
    '{"nesteds":[{},{"inner":{"number":"x"}}]}',
    'nesteds[1].inner.number: "x" is not an int64',
  ),
];

/** What the JSON of a message may say. */
export const jsonBodyRows: readonly Row[] = [...mapped, ...notMapped];
