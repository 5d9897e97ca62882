import { beforeEach, describe, expect, test } from "vitest";
import { createPlantTools } from "../../src/server/plant-tools.ts";
import { openMemoryStore } from "../../src/stores/index.ts";
import { askPlantServer, authorized } from "../support/server/index.ts";
import { rowsFor, rpcRequest, wiresOf, wiresWithTools } from "@protoport/testing";
import { deletePlantProcedure } from "../support/plants/delete-plant.ts";
import { expectedResponse, actualResponse } from "./expected-response.ts";

interface TestCase {
  readonly name: string;
  /** The message: text, or bytes that are not UTF-8. */
  readonly text: string | Buffer;
  /** The deleted plant's id, or the error message. */
  readonly want: bigint | string;
}

/** All plants that could be deleted if the id is read correctly or misread. */
const initialPlants = [0n, 1n, 7n, 8n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n)];

const notInt64 = (text: string): string => `id: ${JSON.stringify(text)} is not an int64`;
const notUtf8 = "not valid JSON: the bytes are not UTF-8";

// One test case per kind. protoport/gateway/test/protobuf/messages/json covers the spellings.
const acceptedCases: readonly TestCase[] = [
  { name: "an id as a string", text: '{"id":"7"}', want: 7n },
  { name: "an id as a number", text: '{"id":7}', want: 7n },
  { name: "white space around every token", text: ' { "id" : "7" }\r\n\t', want: 7n },
  { name: "an escaped digit", text: '{"id":"\\u0037"}', want: 7n },
  { name: "an escaped name", text: '{"\\u0069d":"7"}', want: 7n },
  { name: "a number that a double cannot represent", text: '{"id":9007199254740993}', want: 2n ** 53n + 1n },
  { name: "the largest id", text: '{"id":9223372036854775807}', want: 2n ** 63n - 1n },
  { name: "the smallest id", text: '{"id":"-9223372036854775808"}', want: -(2n ** 63n) },
];

const idCases: readonly TestCase[] = [
  { name: "no id", text: "{}", want: "id is missing" },
  { name: "an id that is null", text: '{"id":null}', want: "id is missing" },
  { name: "leading zeros in a string", text: '{"id":"007"}', want: notInt64("007") },
  { name: "minus zero", text: '{"id":-0}', want: notInt64("-0") },
  { name: "a fraction", text: '{"id":7.0}', want: notInt64("7.0") },
  { name: "2^63", text: '{"id":9223372036854775808}', want: notInt64("9223372036854775808") },
  { name: "2^64 + 7", text: '{"id":"18446744073709551623"}', want: notInt64("18446744073709551623") },
  { name: "a boolean", text: '{"id":true}', want: "id: must be an int64" },
];

const fieldCases: readonly TestCase[] = [
  { name: "another field instead of the id", text: '{"plantId":"7"}', want: 'unknown field "plantId"' },
  { name: "another field in addition to the id", text: '{"id":"7","x":1}', want: 'unknown field "x"' },
  { name: "__proto__", text: '{"__proto__":{"id":"7"}}', want: 'unknown field "__proto__"' },
];

// oxfmt-ignore
const syntaxCases: readonly TestCase[] = [
  { name: "a repeated id", text: '{"id":"7","id":"8"}', want: "id: is set more than once" },
  { name: "an empty body", text: "",
    want: "not valid JSON: expected an object, got the end of the text at character 1" },
  { name: "a byte order mark", text: '\ufeff{"id":"7"}',
    want: 'not valid JSON: expected an object, got "\ufeff" at character 1' },
  { name: "a second object", text: '{"id":"7"}{"id":"8"}',
    want: 'not valid JSON: expected the end of the text, got "{" at character 11' },
  { name: "a lone surrogate", text: '{"id":"\\ud800"}',
    want: "id: not valid JSON: lone surrogate in a string at character 8" },
  { name: "bytes that are not UTF-8", text: Buffer.from('{"id":"7\xff"}', "latin1"), want: notUtf8 },
  { name: "deeply nested objects", text: '{"x":'.repeat(10_000), want: "nested deeper than 100 levels" },
];

const messageCases = [...acceptedCases, ...idCases, ...fieldCases];
const jsonWires = wiresOf("connect-json", "grpc-json", "grpc-web-json");
const toolWires = wiresWithTools.filter(({ format }) => format.protocol === "mcp");
const testCases = [
  ...jsonWires.flatMap((wire) =>
    rowsFor(wire, jsonWires, [...messageCases, ...syntaxCases]).map((testCase) => ({ ...testCase, wire })),
  ),
  // Excludes the syntax cases for tools, because malformed arguments make the JSON-RPC request malformed.
  ...toolWires.flatMap((wire) => rowsFor(wire, toolWires, messageCases).map((testCase) => ({ ...testCase, wire }))),
];

describe("a message in JSON", () => {
  const plants = new Set<bigint>();
  const ask = askPlantServer({ store: openMemoryStore(plants), tools: createPlantTools() });
  beforeEach(() => initialPlants.forEach((id) => plants.add(id)));

  test.each(testCases)("with $name over $wire.name is parsed or refused as specified", async ({ text, want, wire }) => {
    const { format, httpVersion } = wire;
    const response = await ask(httpVersion, rpcRequest(format, Buffer.from(text), [authorized], deletePlantProcedure));
    const outcome =
      typeof want === "bigint" ? ({ code: "ok" } as const) : ({ code: "invalid_argument", message: want } as const);
    expect(actualResponse(format, response)).toStrictEqual(expectedResponse(format, outcome));
    expect(initialPlants.filter((id) => !plants.has(id))).toStrictEqual(typeof want === "bigint" ? [want] : []);
  });
});
