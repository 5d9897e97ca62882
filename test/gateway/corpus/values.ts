import type { JsonValue } from "@bufbuild/protobuf";
import type { Row } from "./row.ts";
import { http, invalid } from "./row.ts";

/** How a type is written in a URL: texts with the JSON they are echoed as, `undefined` for the zero value; and texts that are none. */
interface TypeTexts {
  readonly field: string;
  readonly path: string;
  readonly taken: readonly (readonly [text: string, json: JsonValue | undefined])[];
  readonly refused: readonly string[];
  /** What the refusal says the text is not. */
  readonly noun: string;
}

// All of the spellings are in test/gateway/json/numbers.test.ts; what every server takes is in conformance/cases.
const notCanonical = ["", "+7", "-0", "007", "%207", "7%0A", "0x7", "7.0", "1e3", "null", "%227%22", "%D9%A7", "7;x=1"];

const types: readonly TypeTexts[] = [
  {
    field: "fInt64",
    path: "int64",
    taken: [
      ["%37", "7"],
      ["9007199254740991", "9007199254740991"],
      ["-9007199254740993", "-9007199254740993"],
    ],
    refused: [...notCanonical, "9223372036854775808", "-9223372036854775809", "99999999999999999999"],
    noun: "an int64",
  },
  { field: "fUint64", path: "uint64", taken: [], refused: ["-1", "18446744073709551616", "01"], noun: "a uint64" },
  {
    field: "fInt32",
    path: "int32",
    taken: [],
    refused: ["2147483648", "-2147483649", "4294967296", "1.0", "01"],
    noun: "an int32",
  },
  { field: "fUint32", path: "uint32", taken: [], refused: ["4294967296", "-1"], noun: "a uint32" },
  {
    field: "fDouble",
    path: "double",
    taken: [
      ["-2.5e-3", -0.0025],
      ["NaN", "NaN"],
      ["Infinity", "Infinity"],
      ["-Infinity", "-Infinity"],
      ["1e308", 1e308],
    ],
    refused: ["", "1e309", "0x7", "1.", ".5", "1,5", "%201", "inf", "nan", "1e", "+1"],
    noun: "a double",
  },
  { field: "fFloat", path: "float", taken: [["-Infinity", "-Infinity"]], refused: ["3.5e38", "1f"], noun: "a float" },
  {
    field: "fBool",
    path: "bool",
    taken: [],
    refused: ["", "1", "0", "t", "TRUE", "True", "yes", "%20true"],
    noun: "true or false",
  },
  {
    field: "fString",
    path: "string",
    taken: [
      ["%00", "\0"],
      ["a;b=c", "a;b=c"],
      ["~!$&'()*,=@", "~!$&'()*,=@"],
      ["[x]%7C", "[x]|"],
    ],
    refused: [],
    noun: "",
  },
  {
    field: "fBytes",
    path: "bytes",
    taken: [["%2B%2F8=", "+/8="]],
    refused: ["Q", "QQ=", "Q%20Q", "QQ==QQ==", "%C3%A9"],
    noun: "base64",
  },
  {
    field: "fEnum",
    path: "enum",
    taken: [["0", undefined]],
    refused: ["", "RED", "color_red", "01", "1.0", "2147483648", "toString"],
    noun: "a value of enum kitchensink.v1.Color",
  },
  {
    field: "maybeInt64",
    path: "maybe",
    taken: [
      ["0", "0"],
      ["-1", "-1"],
    ],
    refused: ["null"],
    noun: "an int64",
  },
  {
    field: "wInt64",
    path: "wrapper",
    taken: [
      ["0", "0"],
      ["7", "7"],
    ],
    refused: ["007", "null"],
    noun: "an int64",
  },
  {
    field: "time",
    path: "time",
    taken: [
      ["2024-02-29T12:30:45.5Z", "2024-02-29T12:30:45.500Z"],
      ["2024-02-29T12:30:45%2B01:00", "2024-02-29T11:30:45Z"],
    ],
    refused: ["2024-02-30T00:00:00Z", "1709209845", "2024-02-29", "0000-01-01T00:00:00Z"],
    noun: "an RFC 3339 time",
  },
  {
    field: "duration",
    path: "duration",
    taken: [
      ["1.5s", "1.500s"],
      ["-3s", "-3s"],
    ],
    refused: ["1.5", "1m", "315576000001s"],
    noun: "a duration",
  },
  {
    field: "mask",
    path: "mask",
    taken: [
      ["fooBar,a.b", "fooBar,a.b"],
      ["foo_bar", "fooBar"],
    ],
    refused: ["foo,", "**", "a..b"],
    noun: "a list of field paths",
  },
  { field: "choiceNumber", path: "choice", taken: [["0", "0"]], refused: ["x"], noun: "an int64" },
  { field: "choiceWrapper", path: "choiceWrapper", taken: [["a", "a"]], refused: [], noun: "" },
  {
    field: "longText",
    path: "longText",
    taken: [["9007199254740993", "9007199254740993"]],
    refused: ["01"],
    noun: "an int64",
  },
  { field: "customName", path: "customName", taken: [["a", "a"]], refused: [], noun: "" },
];

const protoName: Readonly<Record<string, string>> = { customName: "odd_name" };

function protoNameOf(field: string): string {
  return protoName[field] ?? field.replaceAll(/[A-Z]/g, (upper) => `_${upper.toLowerCase()}`);
}

function sinkOf(field: string, value: JsonValue | undefined): JsonValue {
  return value === undefined ? {} : { [field]: value };
}

// What a query writes otherwise than a path: "+" is a space there, and "&", "=", ";" need care.
function inQuery(text: string): string {
  return text.replaceAll("+", "%2B").replaceAll("&", "%26");
}

const inPaths: readonly Row[] = types.flatMap(({ field, path, taken, refused, noun }) => [
  ...taken.map(([text, value]) => ({
    rule: `${http}: a path variable of type ${path}`,
    request: `GET /v1/${path}/${text}`,
    want: { rpc: "Types", sink: sinkOf(field, value) },
  })),
  ...refused
    .filter((text) => text !== "")
    .map((text) => ({
      rule: `one canonical spelling per value of type ${path}`,
      request: `GET /v1/${path}/${text}`,
      want: invalid(`${protoNameOf(field)}: `),
    })),
  ...(noun === ""
    ? []
    : [
        {
          rule: "an error names the field and the type",
          request: `GET /v1/${path}/!`,
          want: invalid(`${protoNameOf(field)}: "!" is not ${noun}`),
        },
      ]),
]);

const inQueries: readonly Row[] = types.flatMap(({ field, path, taken, refused }) => [
  ...taken.map(([text, value]) => ({
    rule: `${http}: a query parameter of type ${path}, by JSON name`,
    request: `GET /v1/query?${field}=${inQuery(text)}`,
    want: { rpc: "Query", sink: sinkOf(field, value) },
  })),
  ...(protoNameOf(field) === field ? [] : taken.slice(0, 1)).map(([text, value]) => ({
    rule: `${http}: a query parameter of type ${path}, by proto name`,
    request: `GET /v1/query?${protoNameOf(field)}=${inQuery(text)}`,
    want: { rpc: "Query", sink: sinkOf(field, value) },
  })),
  ...refused.slice(0, 12).map((text) => ({
    rule: `one canonical spelling per value of type ${path}`,
    request: `GET /v1/query?${field}=${inQuery(text)}`,
    want: invalid(`"${field}": `),
  })),
]);

/** Values of every type that has a text form, in paths and in queries. */
export const valueRows: readonly Row[] = [...inPaths, ...inQueries];
