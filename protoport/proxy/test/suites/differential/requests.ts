import type { CaseRequest } from "../../../../conformance/runner/index.ts";
import type { Dice } from "../../../../testing/src/dice.ts";

/** A field's values in URLs and in JSON, most of them valid. */
interface FieldValues {
  readonly name: string;
  readonly values: readonly string[];
  /** Whether JSON bodies contain the values unchanged or as strings. */
  readonly inJson: "raw" | "text";
}

const raw = (name: string, ...values: readonly string[]): FieldValues => ({ name, values, inJson: "raw" });
const textual = (name: string, ...values: readonly string[]): FieldValues => ({ name, values, inJson: "text" });

const scalars: readonly FieldValues[] = [
  raw("double", "0", "1.5", "-2.25", "1e3", "nope"),
  raw("float", "0", "0.5", "-4", "nope"),
  raw("int32", "0", "7", "-7", "2147483647", "-2147483648", "2147483648", "1.5", "seven"),
  textual("int64", "0", "7", "-7", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "seven"),
  raw("uint32", "0", "7", "4294967295", "-1", "4294967296"),
  textual("uint64", "0", "7", "18446744073709551615", "-1"),
  raw("sint32", "0", "7", "-7", "x"),
  textual("sint64", "0", "7", "-7", "x"),
  raw("fixed32", "0", "7", "x"),
  textual("fixed64", "0", "7", "x"),
  raw("sfixed32", "0", "-7", "x"),
  textual("sfixed64", "0", "-7", "x"),
  raw("bool", "true", "false", "yes"),
  textual("string", "", "a", "rose garden", "ä", "a/b", "50%", "{x}", "1", "true", '"'),
  textual("bytes", "", "AQID", "/+8=", "_-8", "AQ", "!"),
  textual("enum", "COLOR_RED", "COLOR_GREEN", "COLOR_UNSPECIFIED", "1", "-1", "COLOR_BLUE", "color_red"),
];

// oxfmt-ignore
const queryParts: readonly string[] = [
  "nested.text=a", "nested.inner.number=5", "nested.tags=a&nested.tags=b", "nested.flag=true", "tree.child.text=leaf",
  "rString=a&rString=b", "r_int32=1&r_int32=2", "rEnum=COLOR_RED&rEnum=COLOR_GREEN", "optInt64=0", "opt_string=",
  "optBool=false", "wString=text", "w_int64=5", "wBool=true", "timestamp=2026-01-31T12:00:00Z", "timestamp=yesterday",
  "duration=1.5s", "duration=soon", "mask=nested.text,fString", "choiceString=a", "choice_int64=9", "ownName=a",
  "renamed=a", "withDigit1=a", "with_digit_1=a", "unknown=1", "nested.unknown=1", "utm_source=mail", "fString=a%20b",
  "fString=a+b", "fString=%C3%A4",
];

// oxfmt-ignore
const bodyParts: readonly string[] = ['"nested":{"text":"a","number":"5","tags":["x","y"]}',
  '"nested":{"inner":{"text":"deep"}}', '"nested":null', '"tree":{"child":{"child":{"text":"leaf"}}}',
  '"rString":["a","b"]', '"r_int64":["1","2"]', '"rNested":[{"text":"a"},{}]', '"rEnum":["COLOR_RED","COLOR_GREEN"]',
  '"mString":{"a":"b","c":"d"}', '"mInt64":{"7":{"text":"a"}}', '"mBool":{"true":1}', '"mEnum":{"a":"COLOR_RED"}',
  '"optInt64":"0"', '"optString":""', '"wString":"text"', '"w_int64":"5"', '"wBool":false',
  '"timestamp":"2026-01-31T12:00:00Z"', '"timestamp":"yesterday"', '"duration":"1.5s"', '"mask":"nested.text,fString"',
  '"struct":{"a":1,"b":[true,null],"c":{"d":"e"}}', '"value":[1,"a",null]', '"list":[1,2]',
  '"any":{"@type":"type.googleapis.com/google.protobuf.StringValue","value":"a"}', '"choiceString":"a"',
  '"choiceNested":{"text":"a"}', '"ownName":"a"', '"unknown":1', '"fString":5', '"fInt32":"7"', '"fInt64":7'];

/** Makes a request as clients send it, mostly valid, to any route in the contract. */
export const makeRequest = (dice: Dice): CaseRequest => dice.oneOf(makers)(dice);

// oxfmt-ignore
const makers: readonly ((dice: Dice) => CaseRequest)[] = [
  query, query, query, pathScalar, pathScalar, create, create, create, createInvalid, replace, update, bodyField,
  returned, others, others, fail, stream,
];

function queryPart(dice: Dice): string {
  if (dice.roll(2) === 0) return dice.oneOf(queryParts);
  const { name, values } = dice.oneOf(scalars);
  const key = dice.roll(2) === 0 ? `f_${name}` : `f${name.charAt(0).toUpperCase()}${name.slice(1)}`;
  return `${key}=${encodeURIComponent(dice.oneOf(values))}`;
}

function queryOf(dice: Dice, most: number): string {
  const parts = Array.from({ length: dice.roll(most + 1) }, () => queryPart(dice));
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

function query(dice: Dice): CaseRequest {
  return { method: "GET", target: `/v1/query${queryOf(dice, 3)}` };
}

function pathScalar(dice: Dice): CaseRequest {
  const { name, values } = dice.oneOf(scalars);
  return { method: "GET", target: `/v1/scalars/${name}/${encodeURIComponent(dice.oneOf(values))}${queryOf(dice, 1)}` };
}

function member(dice: Dice): string {
  if (dice.roll(2) === 0) return dice.oneOf(bodyParts);
  const { name, values, inJson } = dice.oneOf(scalars);
  const value = dice.oneOf(values);
  const isNumber = /^-?[0-9]/.test(value) || value === "true" || value === "false";
  return `"f${name.charAt(0).toUpperCase()}${name.slice(1)}":${inJson === "raw" && isNumber ? value : JSON.stringify(value)}`;
}

function objectOf(dice: Dice, most: number): string {
  const members = new Map(
    Array.from({ length: dice.roll(most + 1) }, () => member(dice)).map((each) => [each.split(":")[0], each]),
  );
  return `{${[...members.values()].join(",")}}`;
}

function create(dice: Dice): CaseRequest {
  const target = `/v1/everything${dice.roll(5) === 0 ? queryOf(dice, 1) : ""}`;
  return { method: "POST", target, json: objectOf(dice, 4) };
}

function createInvalid(dice: Dice): CaseRequest {
  // oxfmt-ignore
  const json = dice.oneOf(["", "{", "[]", "null", '"text"', "{} ", '{"fString":"a"', "{'fString':1}",
    '{"fString":"a",}']);
  return { method: "POST", target: "/v1/everything", json };
}

function replace(dice: Dice): CaseRequest {
  const nested = ["/v1/nested/a/everything", "/v1/nested/a%20b/everything"];
  const target = dice.oneOf(["/v1/everything/7", "/v1/everything/x", ...nested]);
  return { method: "PUT", target, json: objectOf(dice, 3) };
}

function update(dice: Dice): CaseRequest {
  const target = dice.oneOf(["/v1/everything/a/nested", "/v1/nested/a"]);
  const json = dice.oneOf(['{"text":"b"}', '{"number":"5","tags":["x"]}', "{}", '{"unknown":1}', '{"flag":true}']);
  return { method: "PATCH", target: `${target}${queryOf(dice, 1)}`, json };
}

const bodyFields: readonly (readonly [field: string, ...bodies: string[]])[] = [
  ["string", '"a"', '""', "5"],
  ["int64", '"7"', "7", '"x"'],
  ["bool", "true", "false", '"yes"'],
  ["enum", '"COLOR_RED"', "1", '"COLOR_BLUE"'],
  ["strings", '["a","b"]', "[]", '"a"'],
  ["nesteds", '[{"text":"a"}]', "[]"],
  ["map", '{"a":"b"}', "{}"],
  ["timestamp", '"2026-01-31T12:00:00Z"', '"yesterday"'],
  ["wrapper", '"a"', "5"],
  ["struct", '{"a":[1,null]}', "{}"],
  ["value", "5", '"a"', "{}", "[1]"],
];

function bodyField(dice: Dice): CaseRequest {
  const [field, ...bodies] = dice.oneOf(bodyFields);
  return { method: "PUT", target: `/v1/fields/${field}`, json: dice.oneOf(bodies) };
}

function returned(dice: Dice): CaseRequest {
  return { method: "POST", target: "/v1/return", json: objectOf(dice, 3) };
}

function others(dice: Dice): CaseRequest {
  // oxfmt-ignore
  const [method = "", target = ""] = dice.oneOf([
    "GET /v1/nested/a", "GET /v1/deep/a%2Fb", "GET /v1/pairs/a/b", "GET /v1/pairs/a/with/7/and/true",
    "GET /v1/pairs/a/with/x/and/true", "GET /v1/shelves/a/books/b", "GET /v1/shelves/a%20b/books/c",
    "GET /v1/rest/a/b/c", "GET /v1/trees/oak/old", "GET /v1/one/a", "GET /v1/wild/a/end", "GET /v1/wilder/a/b",
    "GET /v1/match/me", "GET /v1/match/you", "GET /v1/match/a/b", "DELETE /v1/match/you", "GET /v1/acts/a",
    "GET /v1/acts/a:peek", "GET /v1/acts:count", "GET /v1/archive/a/b:list", "DELETE /v1/everything/7",
    "DELETE /v1/nothing/a", "GET /v1/none", "GET /", "GET /v1/query/", "POST /v1/query", "PUT /v1/everything",
    "PATCH /v1/match/you",
  ]).split(" ");
  return { method, target: `${target}${dice.roll(4) === 0 ? queryOf(dice, 1) : ""}` };
}

function fail(dice: Dice): CaseRequest {
  return { method: "GET", target: `/v1/fail/${dice.oneOf([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])}` };
}

function stream(dice: Dice): CaseRequest {
  return dice.oneOf<CaseRequest>([
    { method: "GET", target: "/v1/streams/count/3" },
    { method: "GET", target: "/v1/streams/count/0" },
    { method: "GET", target: "/v1/streams/count/2?failWith=5" },
    { method: "GET", target: "/v1/streams/count/0?failWith=5" },
  ]);
}
