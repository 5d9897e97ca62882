import type { JsonValue } from "@bufbuild/protobuf";
import type { Row } from "./row.ts";
import { http, invalid, json, unsupportedMediaType } from "./row.ts";

function create(rule: string, body: string, sink: JsonValue): Row {
  return { rule, request: "POST /v1/sinks", body, want: { rpc: "Create", sink } };
}

function refused(rule: string, body: string | Uint8Array, message: string): Row {
  return { rule, request: "POST /v1/sinks", body, want: invalid(message) };
}

function update(rule: string, field: string, body: string, sink: JsonValue): Row {
  return { rule, request: `PATCH /v1/body/${field}`, body, want: { rpc: "Update", sink } };
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
  refused(`${json}: null is no element`, '{"ids":[null]}', "ids[0]: "),
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

const fields: readonly Row[] = [
  update(`${http}: a body field of type string list`, "tags", '["a","b"]', { tags: ["a", "b"] }),
  update(`${http}: a body field of type message list`, "nesteds", '[{"text":"a"},{}]', {
    nesteds: [{ text: "a" }, {}],
  }),
  update(`${http}: a body field of type map`, "labels", '{"a":"b"}', { labels: { a: "b" } }),
  update(`${http}: a body field of type int64, as a string`, "int64", '"9007199254740993"', {
    fInt64: "9007199254740993",
  }),
  update(`${http}: a body field of type int64, as a number`, "int64", "9007199254740993", {
    fInt64: "9007199254740993",
  }),
  update(`${http}: a body field of type Timestamp`, "time", '"2024-01-01T00:00:00Z"', { time: "2024-01-01T00:00:00Z" }),
  update(`${http}: a body field of type Value`, "value", "[1,null]", { value: [1, null] }),
  update(`${http}: a body field of type Value that is null`, "value", "null", { value: null }),
  update(`${http}: a body field of type Struct`, "struct", '{"a":1}', { struct: { a: 1 } }),
  update(`${http}: a body field of type wrapper`, "wrapper", '""', { wString: "" }),
  update(`${http}: a body field that is a member of a oneof`, "choice", '{"text":"a"}', {
    choiceNested: { text: "a" },
  }),
  update(`${json}: null leaves a field unset`, "tags", "null", {}),
  update("an empty body leaves the field unset", "tags", "", {}),
  {
    rule: "a body field and a query",
    request: "PATCH /v1/body/tags?fString=a",
    body: '["b"]',
    want: { rpc: "Update", sink: { tags: ["b"], fString: "a" } },
  },
  {
    rule: "the query never sets the body's field",
    request: "PATCH /v1/body/tags?tags=a",
    body: '["b"]',
    want: invalid("is bound by the path or the body"),
  },
  {
    rule: "the query never sets a field of the body's message",
    request: "PATCH /v1/nested/a?nested.number=7",
    body: "{}",
    want: invalid("is bound by the path or the body"),
  },
  {
    rule: "the query never sets the body's field, also when the body is empty",
    request: "PATCH /v1/body/tags?tags=a",
    want: invalid("is bound by the path or the body"),
  },
  {
    rule: "the body and the query are of one oneof",
    request: "PATCH /v1/body/choice?choiceText=a",
    body: "{}",
    want: invalid("cannot be set together"),
  },
  {
    rule: "AIP-134: a path field inside of the body's message",
    request: "PATCH /v1/nested/a",
    body: '{"number":"7"}',
    want: { rpc: "Update", sink: { nested: { text: "a", number: "7" } } },
  },
  {
    rule: "AIP-134: an update mask in the query",
    request: "PATCH /v1/nested/a?mask=number",
    body: '{"number":"7"}',
    want: { rpc: "Update", sink: { nested: { text: "a", number: "7" }, mask: "number" } },
  },
  {
    rule: "the body never sets a path field",
    request: "PATCH /v1/nested/a",
    body: '{"text":"b"}',
    want: invalid("text: is bound by the path"),
  },
  {
    rule: "the body never sets a path field, not even to the same",
    request: "PATCH /v1/nested/a",
    body: '{"text":"a"}',
    want: invalid("text: is bound by the path"),
  },
  {
    rule: "the body never sets a deeper path field",
    request: "PATCH /v1/inner/a",
    body: '{"inner":{"inner":{"text":"b"}}}',
    want: invalid("nested.inner.inner.text: is bound by the path"),
  },
  {
    rule: "the body sets what lies beside a deeper path field",
    request: "PATCH /v1/inner/a",
    body: '{"text":"b","inner":{"inner":{"number":7}}}',
    want: { rpc: "Update", sink: { nested: { text: "b", inner: { inner: { text: "a", number: "7" } } } } },
  },
  {
    rule: "a field of the same name elsewhere is another",
    request: "PATCH /v1/children/a",
    body: '{"fString":"b"}',
    want: { rpc: "Update", sink: { fString: "a", child: { fString: "b" } } },
  },
  {
    rule: "an error names the body's field",
    request: "PATCH /v1/body/int64",
    body: '"x"',
    want: invalid('f_int64: "x" is not an int64'),
  },
  {
    rule: "an error names the body's field and the one inside",
    request: "PATCH /v1/nested/a",
    body: '{"number":"x"}',
    want: invalid('nested.number: "x" is not an int64'),
  },
  {
    rule: "an unknown field inside of the body's field",
    request: "PATCH /v1/nested/a",
    body: '{"x":1}',
    want: invalid('unknown field "nested.x"'),
  },
  { rule: "text behind the body's field", request: "PATCH /v1/body/int64", body: "7 8", want: invalid("not JSON") },
];

const collisions: readonly Row[] = [
  {
    rule: `${http}: body "*" beside a path field`,
    request: "PUT /v1/sinks/7",
    body: '{"fString":"a"}',
    want: { rpc: "Replace", sink: { fInt64: "7", fString: "a" } },
  },
  {
    rule: 'body "*" never sets a path field',
    request: "PUT /v1/sinks/7",
    body: '{"fInt64":"9"}',
    want: invalid("f_int64: is bound by the path"),
  },
  {
    rule: 'body "*" never sets a path field, by proto name',
    request: "PUT /v1/sinks/7",
    body: '{"f_int64":"9"}',
    want: invalid("f_int64: is bound by the path"),
  },
  {
    rule: 'body "*" never sets a path field, not even to null',
    request: "PUT /v1/sinks/7",
    body: '{"f_int64":null}',
    want: invalid("f_int64: is bound by the path"),
  },
  {
    rule: 'body "*" never sets a nested path field',
    request: "PUT /v1/nested/a/sinks",
    body: '{"nested":{"text":"b"}}',
    want: invalid("nested.text: is bound by the path"),
  },
  {
    rule: 'body "*" sets what lies beside a nested path field',
    request: "PUT /v1/nested/a/sinks",
    body: '{"nested":{"number":7}}',
    want: { rpc: "Replace", sink: { nested: { text: "a", number: "7" } } },
  },
  {
    rule: 'body "*" that leaves the message of a path field out',
    request: "PUT /v1/nested/a/sinks",
    body: '{"nested":null}',
    want: { rpc: "Replace", sink: { nested: { text: "a" } } },
  },
  {
    rule: 'body "*" and the path are of one oneof',
    request: "PUT /v1/choices/a",
    body: '{"choiceNumber":1}',
    want: invalid("cannot be set together"),
  },
  {
    rule: `${http}: body "*" leaves nothing for the query`,
    request: "POST /v1/sinks?fString=a",
    body: "{}",
    want: invalid("is bound by the path or the body"),
  },
  {
    rule: `${http}: body "*" leaves nothing for the query, nested`,
    request: "POST /v1/sinks?nested.text=a",
    body: "{}",
    want: invalid("is bound by the path or the body"),
  },
  {
    rule: "an unknown parameter is refused beside a body",
    request: "POST /v1/sinks?x=1",
    body: "{}",
    want: invalid('unknown query parameter "x"'),
  },
];

const presence: readonly Row[] = [
  {
    rule: 'an empty body is the empty message for body "*"',
    request: "POST /v1/sinks",
    want: { rpc: "Create", sink: {} },
  },
  {
    rule: 'an empty body is the empty message for body "*", with a path field',
    request: "PUT /v1/sinks/7",
    want: { rpc: "Replace", sink: { fInt64: "7" } },
  },
  {
    rule: "zero bytes are no body, whatever the content type",
    request: "POST /v1/sinks",
    contentType: "text/plain",
    want: { rpc: "Create", sink: {} },
  },
  {
    rule: `${http}: no body is bound`,
    request: "DELETE /v1/sinks/7",
    body: '{"fInt64":"9"}',
    want: invalid("takes no body"),
  },
  {
    rule: `${http}: no body is bound, not even an empty object`,
    request: "DELETE /v1/sinks/7",
    body: "{}",
    want: invalid("takes no body"),
  },
  {
    rule: `${http}: no body is bound, not even white space`,
    request: "DELETE /v1/sinks/7",
    body: " ",
    want: invalid("takes no body"),
  },
  {
    rule: `${http}: no body is bound, of whatever type`,
    request: "DELETE /v1/sinks/7",
    body: "a=1",
    contentType: "application/x-www-form-urlencoded",
    want: invalid("takes no body"),
  },
  {
    rule: `${http}: no body is bound on GET`,
    request: "GET /v1/query",
    body: '{"fString":"a"}',
    want: invalid("takes no body"),
  },
  {
    rule: "RFC 9110 §9.3.5: zero bytes on DELETE are no body",
    request: "DELETE /v1/sinks/7",
    body: "",
    contentType: "text/plain",
    want: { httpStatus: 200, json: {} },
  },
  {
    rule: "a DELETE may bind a body",
    request: "DELETE /v1/bodies/7",
    body: '{"text":"a"}',
    want: { httpStatus: 200, json: {} },
  },
  {
    rule: "a DELETE that binds a body refuses a bad one",
    request: "DELETE /v1/bodies/7",
    body: '{"text":1}',
    want: invalid("nested.text: not a string"),
  },
];

const contentTypes: readonly Row[] = [
  ...[
    "application/json",
    "application/json; charset=utf-8",
    "application/json;charset=UTF-8",
    'application/json; charset="utf-8"',
    "APPLICATION/JSON",
    "application/json; x=y",
    "application/problem+json",
    "application/vnd.shop.v1+json;charset=utf-8",
  ].map((contentType) => ({
    rule: "RFC 8259 §11 and RFC 6839 §3.1: JSON in UTF-8",
    request: "POST /v1/sinks",
    body: '{"fString":"a"}',
    contentType,
    want: { rpc: "Create", sink: { fString: "a" } },
  })),
  {
    rule: "RFC 9110 §8.3: without a content type it is JSON",
    request: "POST /v1/sinks",
    body: '{"fString":"a"}',
    contentType: null,
    want: { rpc: "Create", sink: { fString: "a" } },
  },
  ...[
    "text/plain",
    "text/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/json; charset=utf-16",
    "application/json; charset=latin1",
    "application/json; charset=",
    "application/jsonp",
    "application/xml",
    "application/octet-stream",
    "json",
    "application/",
    "+json",
    "*/*",
    "application/json, text/plain",
  ].map((contentType) => ({
    rule: "RFC 9110 §15.5.16: a content type that is not read",
    request: "POST /v1/sinks",
    body: '{"fString":"a"}',
    contentType,
    want: unsupportedMediaType,
  })),
];

/** What a body may say, and where it may say it. */
export const bodyRows: readonly Row[] = [
  ...mapped,
  ...notMapped,
  ...fields,
  ...collisions,
  ...presence,
  ...contentTypes,
];
