import type { DescMessage, JsonValue, MessageInitShape } from "@bufbuild/protobuf";
import { create, createRegistry, fromBinary, fromJson, toBinary, toJson, toJsonString } from "@bufbuild/protobuf";
// oxfmt-ignore
import { AnySchema, DurationSchema, EmptySchema, StringValueSchema, StructSchema, ValueSchema
} from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ReadJsonOptions } from "../../../../src/protobuf/messages/json/read-options.ts";
import { readJson } from "../../../../src/protobuf/messages/json/read-json.ts";
import { DeleteOrderRequestSchema } from "../../../../../testing/src/gen/orders/v1/orders_pb.ts";
import { Color, NestedSchema, SinkSchema } from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { file_kitchensink_v1_legacy, LegacySchema } from "../../../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { messageIn, stringField } from "../../../../../testing/src/gateway/file-init.ts";
import { isPeerAtLeast, numRunsOf } from "@protoport/testing/process";

const registry = createRegistry(NestedSchema, DurationSchema, EmptySchema, StringValueSchema, AnySchema, ValueSchema);
const thirteenFields = SinkSchema.fields.slice(0, 13).map((field) => field.jsonName);

function parse(json: string): JsonValue {
  const value: JsonValue = JSON.parse(json);
  return value;
}

const nestedAny = (levels: number): string =>
  levels === 0 ? "{}" : `{"value":${nestedAny(levels - 1)},"@type":"x/google.protobuf.Any"}`;

function anyAtDepth98(inner: string): string {
  const any = `{"inner":${inner},"@type":"x/kitchensink.v1.Nested"}`;
  return `${'{"child":'.repeat(97)}{"any":${any}}${"}".repeat(97)}`;
}

const nested = (open: string, close: string): string => open.repeat(101) + close.repeat(101);

function problemOf(desc: DescMessage, json: string | Uint8Array, options?: ReadJsonOptions): string {
  try {
    readJson(desc, json, options);
  } catch (error) {
    expect(error).toBeInstanceOf(ConnectError);
    const refused = ConnectError.from(error);
    expect(refused.code).toBe(Code.InvalidArgument);
    return refused.rawMessage;
  }
  throw new Error(`the JSON was accepted: ${String(json)}`);
}

// Excludes JSON that older protobuf-es versions refuse or read incorrectly.
const isReadByProtobuf = (json: string): boolean =>
  (isPeerAtLeast("@bufbuild/protobuf", "2.16") || !json.includes("__proto__")) &&
  (isPeerAtLeast("@bufbuild/protobuf", "2.10") || !/"value(s|ByName)":[^}]*null/.test(json));

test.each<string>(
  [
    "{}",
    '{"fDouble":1.5,"fFloat":"2.5","fInt32":-1,"fUint32":"4294967295","fSint32":1e2,"fFixed32":7.0,"fSfixed32":"-8"}',
    '{"fDouble":"NaN","fFloat":"-Infinity","wDouble":"Infinity"}',
    '{"fInt64":"-9223372036854775808","fUint64":"18446744073709551615","fSint64":"1","fFixed64":2,"fSfixed64":"-3"}',
    '{"fBool":true,"fString":"a\\u00e9\\ud83c\\udf31\\n","fBytes":"-_8=","fEnum":"COLOR_GREEN"}',
    '{"f_bool":true,"f_string":"proto names","f_enum":1}',
    '{"fEnum":17}',
    '{"maybeInt64":"0","maybeString":"","maybeBool":false,"maybeEnum":"COLOR_UNSPECIFIED"}',
    '{"ids":[1,"2"],"tags":["",""],"colors":[0,"COLOR_RED"],"blobs":["","QQ=="],"doubles":["NaN",1]}',
    '{"nesteds":[{},{"text":"a","inner":{"inner":{}}}],"times":["2024-01-01T00:00:00Z"]}',
    '{"words":["a",""],"structs":[{"a":[1]},{}],"values":[null,1,"x",[],{}]}',
    '{"labels":{"":"empty","__proto__":"x","constructor":"y"},"counts":{"true":1,"false":0}}',
    '{"nestedById":{"-7":{"text":"a"},"0":{}},"palette":{"a":"COLOR_RED","b":2}}',
    '{"valueByName":{"n":null,"o":{"a":[null]}},"blobByName":{"a":"QQ"}}',
    '{"child":{"child":{"child":{"fString":"deep"}}},"empty":{}}',
    '{"choiceText":""}',
    '{"choiceNumber":"0"}',
    '{"choiceNested":{"text":"a"}}',
    '{"choiceEnum":"COLOR_RED"}',
    '{"choiceWrapper":"a"}',
    '{"choiceNull":null}',
    '{"choiceStruct":{"a":1}}',
    '{"choiceBytes":"QQ=="}',
    '{"choiceText":null,"choiceNumber":"1"}',
    '{"wDouble":1.5,"wFloat":1,"wInt64":"-1","wUint64":1,"wInt32":0,"wUint32":"1","wBool":false,"wString":"","wBytes":""}',
    '{"time":"2024-02-29T12:30:45.123456789+01:00","duration":"-1.5s","mask":"fooBar,a.b"}',
    '{"struct":{"a":null,"b":[1,"x",true,{"__proto__":1}]},"value":{"a":[null]},"list":[1,[],null],"nullValue":null}',
    '{"value":null}',
    '{"customName":"by JSON name"}',
    '{"odd_name":"by proto name"}',
    '{"any":{}}',
    `{"values":[${"[[]],".repeat(120)}{"a":{}}],"struct":{"a":[${"{},".repeat(120)}0]}}`,
    `{"nesteds":[${'{"inner":{}},'.repeat(120)}{}]}`,
    '{"any":{"@type":"type.googleapis.com/kitchensink.v1.Nested","text":"a"}}',
    '{"any":{"text":"type last","@type":"type.googleapis.com/kitchensink.v1.Nested"}}',
    '{"any":{"@type":"type.googleapis.com/google.protobuf.Duration","value":"1.5s"}}',
    '{"any":{"@type":"type.googleapis.com/google.protobuf.Any","value":{"@type":"type.googleapis.com/google.protobuf.StringValue","value":"a"}}}',
    '{"any":{"value": {"value":"a","@type":"type.googleapis.com/google.protobuf.StringValue"},"@type":"type.googleapis.com/google.protobuf.Any"}}',
    '{"any":{"value":{"value":{"@type":"a","b":[{"@type":"c"}]},"@type":"type.googleapis.com/google.protobuf.Value"},"@type":"type.googleapis.com/google.protobuf.Any"}}',
    '{"any":{"value":{},"@type":"type.googleapis.com/google.protobuf.Any"}}',
    '{"fInt64":null,"maybeInt64":null,"ids":null,"labels":null,"nested":null,"wInt64":null,"fEnum":null,"time":null,"struct":null}',
    '{"longText":"9007199254740993","longTexts":["-1"]}',
  ].filter(isReadByProtobuf),
)("readJson() compared with fromJson() reads %s as the same Sink message", (json) => {
  const message = readJson(SinkSchema, json, { registry });
  const want = fromJson(SinkSchema, parse(json), { registry });
  expect(toJson(SinkSchema, message, { registry })).toEqual(toJson(SinkSchema, want, { registry }));
  expect([toBinary(SinkSchema, message), message]).toEqual([toBinary(SinkSchema, want), want]);
});

test.each([
  { desc: ValueSchema, json: '{"a":[1,null]}' },
  { desc: ValueSchema, json: "null" },
  { desc: StructSchema, json: '{"a":{"b":1}}' },
  { desc: StringValueSchema, json: '"a"' },
  { desc: DurationSchema, json: '"1s"' },
])("readJson() compared with fromJson() reads $json as the same $desc.typeName message", ({ desc, json }) => {
  expect(readJson(desc, json)).toEqual(fromJson(desc, parse(json)));
});

test.each([
  { json: '{"id":9007199254740993}', want: 9007199254740993n },
  { json: '{"id":"9007199254740993"}', want: 9007199254740993n },
  { json: '{"id":9.223372036854775807e18}', want: 9223372036854775807n },
  { json: '{"id":"1e3"}', want: 1000n },
  { json: '{"id":7.0}', want: 7n },
  { json: '{"id":"\\u0037"}', want: 7n },
  { json: "{}", want: undefined },
  { json: '{"id":null}', want: undefined },
])("readJson() with 64-bit integers reads the id in $json exactly ($want)", ({ json, want }) => {
  expect(readJson(DeleteOrderRequestSchema, json).id).toBe(want);
  expect(readJson(DeleteOrderRequestSchema, new TextEncoder().encode(json)).id).toBe(want);
});

test("readJson() with 64-bit integers keeps all digits in a field with jstype JS_STRING", () =>
  expect(readJson(SinkSchema, '{"longText":9007199254740993}').longText).toBe("9007199254740993"));

test("readJson() with 64-bit integers sets the map key __proto__ as an ordinary property", () => {
  const { labels } = readJson(SinkSchema, '{"labels":{"__proto__":"a","b":"c"}}');
  expect(Object.getOwnPropertyDescriptors(labels)).toMatchObject({
    ["__proto__"]: { value: "a", writable: true, enumerable: true, configurable: true },
  });
});

describe("readJson()", () => {
  test.each([
    { json: '{"id":"007"}', want: 'id: "007" is not an int64' },
    { json: '{"id":1.5}', want: 'id: "1.5" is not an int64' },
    { json: '{"id":9223372036854775808}', want: 'id: "9223372036854775808" is not an int64' },
    { json: '{"id":true}', want: "id: must be an int64" },
    { json: '{"id":[7]}', want: "id: must be an int64" },
    { json: '{"id":{}}', want: "id: must be an int64" },
    { json: '{"id":7,"id":7}', want: "id: is set more than once" },
    { json: '{"id":7,"\\u0069d":8}', want: "id: is set more than once" },
    { json: '{"id":null,"id":8}', want: "id: is set more than once" },
    { json: '{"orderId":"7"}', want: 'unknown field "orderId"' },
    { json: '{"x":1,"id":"7","y":[{"z":1}]}', want: 'unknown fields "x", "y"' },
    { json: '{"x":1,"x":2}', want: 'key "x" is set more than once' },
    { json: "null", want: 'must be an object, got "n" at character 1' },
    { json: "7", want: 'must be an object, got "7" at character 1' },
    { json: '{"id":"7"}}', want: 'not valid JSON: expected the end of the text, got "}" at character 11' },
    { json: "", want: "not valid JSON: expected an object, got the end of the text at character 1" },
    { json: '{"id":07}', want: 'not valid JSON: expected "," or "}", got "7" at character 8' },
    { json: '{"Id":"7"}', want: 'unknown field "Id"' },
    { json: '{"__proto__":{"id":7}}', want: 'unknown field "__proto__"' },
    { json: '{"toString":1}', want: 'unknown field "toString"' },
  ])("refuses $json as a DeleteOrderRequest", ({ json, want }) => {
    expect(problemOf(DeleteOrderRequestSchema, json)).toBe(want);
  });

  test.each(
    // oxfmt-ignore
    [
      { json: '{"nested":{"number":"x"}}', want: 'nested.number: "x" is not an int64' },
      { json: '{"nesteds":[{},{"inner":{"number":1.5}}]}', want: 'nesteds[1].inner.number: "1.5" is not an int64' },
      { json: '{"nestedById":{"7":{"text":1}}}', want: 'nested_by_id["7"].text: must be a string' },
      { json: '{"nested":{"x":1},"nesteds":[{"y":1}]}', want: 'unknown fields "nested.x", "nesteds[0].y"' },
      { json: '{"nested":7}', want: 'nested: must be an object, got "7" at character 11' },
      { json: '{"customName":"a","odd_name":"b"}', want: "odd_name: is set more than once" },
      { json: '{"choiceText":"a","choiceNumber":1}', want: "choice_number: cannot be set together with choice_text" },
      { json: '{"choiceNull":null,"choiceText":"a"}', want: "choice_text: cannot be set together with choice_null" },
      ...["fDouble", "fInt64", "f_sfixed64", "fBool"].map((name) => ({ json: `{${thirteenFields.map((each) => `"${each}":null`).join()},"${name}":null}`,
        want: `${name.replaceAll(/[A-Z]/g, (upper) => `_${upper.toLowerCase()}`)}: is set more than once`,
      })),
      { json: '{"ids":7}', want: "ids: must be an array" },
      { json: '{"ids":[1,null]}', want: "ids[1]: must not be null in an array or a map" },
      { json: '{"nesteds":[null]}', want: "nesteds[0]: must not be null in an array or a map" },
      { json: '{"colors":[null]}', want: "colors[0]: must not be null in an array or a map" },
      { json: '{"palette":{"a":null}}', want: 'palette["a"]: must not be null in an array or a map' },
      { json: '{"labels":[]}', want: "labels: must be an object" },
      { json: '{"labels":{"a":null}}', want: 'labels["a"]: must not be null in an array or a map' },
      { json: '{"labels":{"a":"b","\\u0061":"c"}}', want: 'labels: key "a" is set more than once' },
      { json: '{"nestedById":{"x":{}}}', want: 'nested_by_id: "x" is not a valid key of this map' },
      { json: '{"counts":{"True":1}}', want: 'counts: "True" is not a valid key of this map' },
      { json: '{"fBool":"true"}', want: "f_bool: must be true or false" },
      { json: '{"fBool":1}', want: "f_bool: must be true or false" },
      { json: '{"fString":1}', want: "f_string: must be a string" },
      { json: '{"fString":"\\ud800"}', want: "f_string: not valid JSON: lone surrogate in a string at character 13" },
      { json: '{"fBytes":"Q"}', want: 'f_bytes: "Q" is not base64' },
      { json: '{"fBytes":[81]}', want: "f_bytes: must be base64" },
      { json: '{"fEnum":"RED"}', want: 'f_enum: "RED" is not a value of enum kitchensink.v1.Color' },
      { json: '{"fEnum":"color_red"}', want: 'f_enum: "color_red" is not a value of enum kitchensink.v1.Color' },
      { json: '{"fEnum":"1"}', want: 'f_enum: "1" is not a value of enum kitchensink.v1.Color' },
      { json: '{"fEnum":1.5}', want: 'f_enum: "1.5" is not a value of enum kitchensink.v1.Color' },
      { json: '{"fEnum":2147483648}', want: 'f_enum: "2147483648" is not a value of enum kitchensink.v1.Color' },
      { json: '{"fEnum":true}', want: "f_enum: must be the name or number of a value of enum kitchensink.v1.Color" },
      { json: '{"fInt32":2147483648}', want: 'f_int32: "2147483648" is not an int32' },
      { json: '{"fUint32":-1}', want: 'f_uint32: "-1" is not a uint32' },
      { json: '{"fDouble":1e309}', want: 'f_double: "1e309" is not a double' },
      { json: '{"fFloat":3.5e38}', want: 'f_float: "3.5e38" is not a float' },
      { json: '{"fDouble":true}', want: "f_double: must be a double" },
      { json: '{"time":"2024-02-30T00:00:00Z"}',
        want: 'time: "2024-02-30T00:00:00Z" is not an RFC 3339 time from year 1 to 9999' },
      { json: '{"time":{"seconds":1}}', want: "time: must be an RFC 3339 time from year 1 to 9999" },
      { json: '{"duration":"1.5"}', want: 'duration: "1.5" is not a duration such as "1.5s"' },
      { json: '{"mask":"foo_bar"}',
        want: 'mask: "foo_bar" is not a comma-separated list of lowerCamelCase field paths' },
      { json: '{"struct":[]}', want: "struct: must be an object" },
      { json: '{"struct":{"a":{"b":1,"b":2}}}', want: 'struct: key "b" is set more than once' },
      { json: '{"value":{"a":1e309}}', want: 'value: "1e309" is not a double' },
      { json: '{"list":{}}', want: 'list: must be an array, got "{" at character 9' },
      { json: '{"empty":{"a":1}}', want: 'unknown field "empty.a"' },
      { json: '{"any":7}', want: "any: must be an object" },
      { json: '{"any":{"text":"a"}}', want: 'any: "@type" is missing' },
      { json: '{"any":{"@type":7}}', want: 'any: "@type" is missing' },
      { json: '{"any":{"value":{"@type":7},"@type":"x/google.protobuf.Any"}}', want: 'any: "@type" is missing' },
      { json: '{"any":{"@type":"kitchensink.v1.Nested"}}', want: 'any: unknown type "kitchensink.v1.Nested"' },
      { json: '{"any":{"@type":"x/not.Known"}}', want: 'any: unknown type "x/not.Known"' },
      { json: '{"any":{"@type":"x/kitchensink.v1.Nested","y":1}}', want: 'unknown field "any.y"' },
      { json: '{"any":{"@type":"x/kitchensink.v1.Nested","@type":"x/y"}}',
        want: 'any: key "@type" is set more than once' },
      { json: '{"any":{"@type":"x/google.protobuf.Empty","value":{"a":1}}}', want: 'unknown field "any.a"' },
      { json: '{"any":{"@type":"x/google.protobuf.Empty","value":7}}',
        want: 'any: must be an object, got "7" at character 51' },
      { json: '{"any":{"@type":"x/google.protobuf.Empty","y":{}}}', want: 'unknown field "any.y"' },
      { json: '{"any":{"@type":"x/google.protobuf.Duration"}}', want: 'any: "value" is missing' },
      { json: '{"any":{"@type":"x/google.protobuf.Duration","value":"1s","value":"1s"}}',
        want: 'any: key "value" is set more than once' },
      { json: '{"any":{"@type":"x/google.protobuf.Duration","y":1,"value":"1s","y":1}}',
        want: 'any: key "y" is set more than once' },
      { json: '{"any":{"@type":"x/google.protobuf.Duration","value":"1s","y":1}}', want: 'unknown field "any.y"' },
    ],
  )("refuses $json as a Sink", ({ json, want }) => expect(problemOf(SinkSchema, json, { registry })).toBe(want));

  test.each<[name: string, json: string | Uint8Array, want: RegExp]>([
    [
      "bytes that are not UTF-8",
      Buffer.from('{"fString":"\xff"}', "latin1"),
      /^not valid JSON: the bytes are not UTF-8$/,
    ],
    ["a byte order mark", Buffer.from("\ufeff{}"), /^not valid JSON: expected an object, got "/],
    ["a text with a lone surrogate", '{"fString":"\ud800"}', /^not valid JSON: lone surrogate in the text$/],
  ])("refuses %s", (_name, json, want) => expect(problemOf(SinkSchema, json)).toMatch(want));

  test("requires fields of types that also contain types without required fields", () => {
    const plain = { ...stringField("a", 1), type: 11, typeName: ".Plain" };
    const other = { ...stringField("b", 2), type: 11 };
    const messageType = [
      { name: "Plain" },
      { name: "Strict", field: [{ ...stringField("id", 1), label: 2 }] },
      { name: "Both", field: [plain, { ...other, typeName: ".Strict" }] },
      { name: "Root", field: [plain, { ...other, typeName: ".Both" }] },
    ];
    const root = messageIn({ name: "root.proto", messageType }, "Root");
    expect(problemOf(root, '{"b":{"b":{}}}')).toBe("b.b.id: is required");
  });

  test("refuses nesting beyond 100 levels, in every kind of value", () => {
    expect(problemOf(ValueSchema, nested("[", "]"))).toMatch(/^nested deeper than 100 levels/);
    expect(problemOf(SinkSchema, `{"struct":${nested('{"a":', "}").replace(":}", ":1}")}}`)).toMatch(/nested deeper/);
    expect(problemOf(SinkSchema, nested('{"child":', "}").replace(":}", ":{}}"))).toMatch(/nested deeper/);
    expect(problemOf(SinkSchema, `{"unknown":${nested("[", "]")}}`)).toMatch(/nested deeper/);
  });

  test("refuses more than eight levels of Any", () => {
    expect(problemOf(AnySchema, nestedAny(9), { registry })).toMatch(
      /google\.protobuf\.Any is nested more than 8 levels deep$/,
    );
    expect(readJson(AnySchema, nestedAny(8), { registry }).typeUrl).toBe("x/google.protobuf.Any");
  });

  test("accepts 20 sibling Anys with eight levels each", () => {
    const json = `{"name":"a","children":[${Array.from({ length: 20 }, () => `{"name":"b","any":${nestedAny(8)}}`).join()}]}`;
    expect(readJson(LegacySchema, json, { registry }).children).toHaveLength(20);
  });

  test("counts the levels in an Any once towards the nesting limit", () => {
    expect(readJson(SinkSchema, anyAtDepth98("{}"), { registry }).child).toBeDefined();
    expect(problemOf(SinkSchema, anyAtDepth98('{"inner":{}}'), { registry })).toMatch(/nested deeper than 100 levels/);
  });

  test("names at most 16 unknown fields in its error", () => {
    const json = JSON.stringify(Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`x${at}`, at])));
    expect(problemOf(SinkSchema, json)).toMatch(/"x15" and 4 more$/);
  });

  test("escapes a surrogate that truncation splits from its pair", () => {
    const text = "x".repeat(63);
    expect(problemOf(DeleteOrderRequestSchema, `{"id":"${text}🌱"}`)).toBe(`id: "${text}\\ud83c…" is not an int64`);
  });

  test("truncates a long value in its error", () =>
    expect(problemOf(DeleteOrderRequestSchema, `{"id":"${"9".repeat(100_000)}"}`).length).toBeLessThan(120));
});

describe("readJson() with canonical integers", () => {
  const options = { canonicalIntegers: true };
  test.each(["7", '"7"', "-7", '"0"'])("accepts %s as an integer", (id) =>
    expect(readJson(DeleteOrderRequestSchema, `{"id":${id}}`, options).id).toBe(BigInt(id.replaceAll('"', ""))),
  );

  test.each(["7.0", "1e3", '"1e3"', "-0", '"+7"', '"7.0"'])("refuses %s as an integer", (id) =>
    expect(problemOf(DeleteOrderRequestSchema, `{"id":${id}}`, options)).toMatch(/^id: .* is not an int64$/),
  );
});

test.each([
  '{"@type":"x/google.protobuf.Empty"}',
  '{"@type":"x/google.protobuf.Empty","value":{}}',
  '{"value":{},"@type":"x/google.protobuf.Empty"}',
])("readJson() reads %s as an Any with google.protobuf.Empty", (json) => {
  const any = { typeUrl: "x/google.protobuf.Empty", value: new Uint8Array() };
  expect(readJson(AnySchema, json, { registry })).toMatchObject(any);
});

test.each([
  { json: '{"orderId":"7","id":"8","x":{"y":[1]}}', want: { id: 8n } },
  { json: '{"x":{"a":1}}', want: {} },
])("readJson() with unknown fields ignored reads $json without its unknown fields", ({ json, want }) => {
  expect(readJson(DeleteOrderRequestSchema, json, { unknownFields: "ignore" })).toEqual(
    create(DeleteOrderRequestSchema, want),
  );
});

test("readJson() with unknown fields ignored ignores unknown enum names, even in lists and maps", () => {
  const json = '{"fEnum":"NEW","choiceEnum":"NEW","colors":["NEW","COLOR_RED"],"palette":{"a":"NEW","b":1}}';
  expect(readJson(SinkSchema, json, { unknownFields: "ignore" })).toEqual(
    create(SinkSchema, { colors: [1], palette: { b: 1 } }),
  );
});

test("readJson() with unknown fields ignored does not set an extension to an unknown enum name", () => {
  const options: ReadJsonOptions = { unknownFields: "ignore", registry: createRegistry(file_kitchensink_v1_legacy) };
  const json = '{"name":"a","[kitchensink.v1.tint]":"SHADE_NEW"}';
  expect(readJson(LegacySchema, json, options)).toEqual(create(LegacySchema, { name: "a" }));
});

test.each(['{"x":1,"x":2}', '{"x":{"y":1,"y":2}}', '{"x":[1,]}', '{"x":"\\ud800"}', '{"x":01}', '{"id":"007","x":1}'])(
  "readJson() with unknown fields ignored refuses %s although unknown fields are ignored",
  (json) => void problemOf(DeleteOrderRequestSchema, json, { unknownFields: "ignore" }),
);

describe("readJson() with random input", () => {
  // Messages parsed from random bytes, because JSON must be able to express everything that the binary format can.
  const text = fc.string({ unit: "grapheme" });
  const nanoseconds = fc.integer({ min: 0, max: 999_999_999 });
  // oxfmt-ignore
  const field: fc.Arbitrary<MessageInitShape<typeof SinkSchema>> = fc.oneof(
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((fInt64) => ({ fInt64 })),
    fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((fUint64) => ({ fUint64 })),
    // JSON.stringify drops the sign of zero.
    fc.double().map((fDouble) => ({ fDouble: fDouble === 0 ? 0 : fDouble })),
    fc.float().map((fFloat) => ({ fFloat: fFloat === 0 ? 0 : fFloat })),
    text.map((fString) => ({ fString })),
    fc.uint8Array().map((fBytes) => ({ fBytes: new Uint8Array(fBytes) })),
    fc.array(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })).map((ids) => ({ ids })),
    fc.dictionary(text, text).filter((labels) => isReadByProtobuf(JSON.stringify(labels))).map((labels) => ({ labels })),
    text.map((value) => ({ nested: { text: value, inner: { text: value } } })),
    fc.constantFrom(Color.UNSPECIFIED, Color.RED, Color.GREEN).map((fEnum) => ({ fEnum })),
    fc.json().map((json) => ({ struct: { json: parse(json) } })),
    fc.string().map((value) => ({ choice: { case: "choiceText" as const, value } })),
    fc.tuple(fc.bigInt({ min: -62135596800n, max: 253402300799n }), nanoseconds)
      .map(([seconds, nanos]) => ({ time: { seconds, nanos } })),
    fc.tuple(fc.bigInt({ min: 0n, max: 315576000000n }), nanoseconds, fc.constantFrom(1, -1))
      .map(([seconds, nanos, sign]) => ({ duration: { seconds: BigInt(sign) * seconds, nanos: sign * nanos } })),
  );

  test("reads back every message that protobuf-es writes", () =>
    fc.assert(
      fc.property(field, field, (one, other) => {
        const message = create(SinkSchema, one);
        message.child = create(SinkSchema, other);
        const result = readJson(SinkSchema, toJsonString(SinkSchema, message));
        expect(toBinary(SinkSchema, result)).toEqual(toBinary(SinkSchema, message));
        expect(result).toEqual(fromBinary(SinkSchema, toBinary(SinkSchema, result)));
      }),
      { numRuns: numRunsOf(200) },
    ));

  test("throws no error other than InvalidArgument for random bytes", () => {
    const words = ["null", '"fInt64"', '"any"', '"@type"', '"child"', '"time"'];
    const pieces = fc.constantFrom(...words, ...Array.from('{}[]:,"\\1e\u0000é'));
    const texts = fc.array(pieces, { maxLength: 30 }).map((list) => new TextEncoder().encode(list.join("")));
    const property = fc.property(fc.oneof(fc.uint8Array(), texts), (bytes) => {
      try {
        readJson(SinkSchema, bytes, { registry });
      } catch (error) {
        expect(ConnectError.from(error).code).toBe(Code.InvalidArgument);
      }
    });
    fc.assert(property, { numRuns: numRunsOf(1000) });
  });
});
