import type { JsonValue } from "@bufbuild/protobuf";
import { type Case, http, invalid } from "./case.ts";

/**
 * How a type is written in a URL: a string, the JSON as which it is echoed, and what an error says the string must be.
 */
interface TypeText {
  readonly field: string;
  readonly path: string;
  readonly text: string;
  readonly value: JsonValue;
  /** Missing if every string is valid. */
  readonly noun?: string;
}

// Tests the error messages. All spellings are in protoport/gateway/test/protobuf/messages/json and protoport/conformance/cases.
// oxfmt-ignore
const types: readonly TypeText[] = [
  { field: "fInt64", path: "int64", text: "%37", value: "7", noun: "an int64" },
  { field: "fUint64", path: "uint64", text: "18446744073709551615", value: "18446744073709551615", noun: "a uint64" },
  { field: "fInt32", path: "int32", text: "-7", value: -7, noun: "an int32" },
  { field: "fUint32", path: "uint32", text: "7", value: 7, noun: "a uint32" },
  { field: "fDouble", path: "double", text: "-2.5e-3", value: -0.0025, noun: "a double" },
  { field: "fFloat", path: "float", text: "-Infinity", value: "-Infinity", noun: "a float" },
  { field: "fBool", path: "bool", text: "true", value: true, noun: "true or false" },
  { field: "fString", path: "string", text: "~!$'()*,=@[x]%7C;%00", value: "~!$'()*,=@[x]|;\0" },
  { field: "fBytes", path: "bytes", text: "%2B%2F8=", value: "+/8=", noun: "base64" },
  { field: "fEnum", path: "enum", text: "1", value: "COLOR_RED", noun: "a value of enum kitchensink.v1.Color" },
  { field: "maybeInt64", path: "maybe", text: "0", value: "0", noun: "an int64" },
  { field: "wInt64", path: "wrapper", text: "0", value: "0", noun: "an int64" },
  { field: "time", path: "time", text: "2024-02-29T12:30:45.5Z", value: "2024-02-29T12:30:45.500Z",
    noun: "an RFC 3339 time" },
  { field: "duration", path: "duration", text: "1.5s", value: "1.500s", noun: "a duration" },
  { field: "mask", path: "mask", text: "foo_bar,a.b", value: "fooBar,a.b",
    noun: "a comma-separated list of field paths" },
  { field: "choiceNumber", path: "choice", text: "0", value: "0", noun: "an int64" },
  { field: "choiceWrapper", path: "choiceWrapper", text: "a", value: "a" },
  { field: "longText", path: "longText", text: "9007199254740993", value: "9007199254740993", noun: "an int64" },
  { field: "customName", path: "customName", text: "a", value: "a" },
];

const protoName: Readonly<Record<string, string>> = { customName: "odd_name" };

const protoNameOf = (field: string): string =>
  protoName[field] ?? field.replaceAll(/[A-Z]/g, (upper) => `_${upper.toLowerCase()}`);

/** Values for every type that has a string form, in paths and in queries. */
export const valueCases: readonly Case[] = [
  ...types.flatMap(rowsOf),
  {
    rule: "the name of an inherited property is not an enum value",
    request: "GET /v1/enum/toString",
    want: invalid('f_enum: "toString" is not a value of enum kitchensink.v1.Color'),
  },
];

function rowsOf({ field, path, text, value, noun }: TypeText): readonly Case[] {
  return [
    {
      rule: `${http}: a path variable of type ${path}`,
      request: `GET /v1/${path}/${text}`,
      want: { rpc: "Types", sink: { [field]: value } },
    },
    ...[...new Set([field, protoNameOf(field)])].map((name) => ({
      rule: `${http}: a query parameter of type ${path}, by JSON name and by proto name`,
      request: `GET /v1/query?${name}=${text}`,
      want: { rpc: "Query", sink: { [field]: value } },
    })),
    ...(noun === undefined ? [] : refused(field, path, noun)),
  ];
}

function refused(field: string, path: string, noun: string): readonly Case[] {
  const text = "!";
  const rule = "an error names the field and the type";
  const problem = `"${text}" is not ${noun}`;
  return [
    { rule, request: `GET /v1/${path}/${text}`, want: invalid(`${protoNameOf(field)}: ${problem}`) },
    { rule, request: `GET /v1/query?${field}=${text}`, want: invalid(`"${field}" is not valid: ${problem}`) },
  ];
}
