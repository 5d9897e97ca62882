import type { DescMessage } from "@bufbuild/protobuf";
import { Ajv2020 } from "ajv/dist/2020.js";
import ajvFormats from "ajv-formats";
import { describe, expect, test } from "vitest";
import { createMessageSchema } from "../../../src/openapi/index.ts";
import { createJsonMessageWriter, readJson } from "../../../src/protobuf/messages/json/index.ts";
import { kitchenSinkRegistry } from "../../../../testing/src/gateway/kitchen-sink.ts";
import { rollMessage } from "../../../../testing/src/gateway/random-message.ts";
import { Dice } from "@protoport/testing/process";
import { SinkSchema } from "../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { everyType } from "./results.ts";

// Returns a tool schema's validator, which uses ajv.

function validatorOf(desc: DescMessage, direction: "input" | "output"): (value: unknown) => boolean {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true });
  ajvFormats.default(ajv);
  const isClosed = direction === "input";
  const options = { comments: new Map<string, string>(), useProtoFieldName: false, direction, isClosed };
  return ajv.compile(createMessageSchema(desc, options).schema);
}

const write = createJsonMessageWriter(SinkSchema, { registry: kitchenSinkRegistry });
const isInput = validatorOf(SinkSchema, "input");
const isOutput = validatorOf(SinkSchema, "output");

test("the output schema accepts the JSON of random messages", () => {
  let checked = 0;
  for (let seed = 0; seed < 2_000; seed += 1) {
    let json: unknown;
    try {
      json = JSON.parse(write(rollMessage(new Dice(seed), SinkSchema)));
    } catch {
      // The message has no JSON form. For example, an Any has an unknown type.
      continue;
    }
    checked += 1;
    expect(isOutput(json), JSON.stringify(json)).toBe(true);
  }
  expect(checked).toBeGreaterThan(300);
});

test("the input and output schemas accept a message with every field type", () =>
  expect([isInput(everyType), isOutput(everyType)]).toEqual([true, true]));

describe.each([
  ["an integer as a string", '{"fInt32":"7"}', { fInt32: 7 }],
  ["an integer as a string with an exponent", '{"fInt32":"7e1"}', { fInt32: 70 }],
  ["a 64-bit integer as a number", '{"fInt64":9007199254740993}', { fInt64: "9007199254740993" }],
  ["a 64-bit integer with an exponent", '{"fUint64":7e1}', { fUint64: "70" }],
  ["a double as a string", '{"fDouble":"1.5"}', { fDouble: 1.5 }],
  ["the number of an enum value", '{"fEnum":1}', { fEnum: "COLOR_RED" }],
  ["NaN", '{"fDouble":"NaN"}', undefined],
  ["infinity", '{"fFloat":"-Infinity"}', undefined],
  ["null for a field that is not set", '{"fString":null,"ids":null,"nested":null}', {}],
  ["the name of a field in the definition", '{"f_int32":7}', { fInt32: 7 }],
  ["the name NULL_VALUE", '{"nullValue":"NULL_VALUE"}', { nullValue: null }],
])("%s in JSON", (_name, json, canonical) => {
  test("is accepted by the decoder, but not by the input schema", () => {
    expect(isInput(JSON.parse(json))).toBe(false);
    const message = readJson(SinkSchema, json);
    if (canonical === undefined) return;
    expect([isInput(canonical), message]).toEqual([true, readJson(SinkSchema, JSON.stringify(canonical))]);
  });
});

test.each([
  { name: "an int64 that is too large", value: { fInt64: "9223372036854775808" } },
  { name: "an int32 that is too large", value: { fInt32: 2 ** 31 } },
  { name: "a negative unsigned integer", value: { fUint32: -1 } },
  { name: "a oneof with two members", value: { choiceText: "a", choiceNumber: "1" } },
  { name: "an unknown enum value", value: { fEnum: "COLOR_PINK" } },
  { name: "an unknown field", value: { fUnknown: 1 } },
])("$name is refused by the input schema and the decoder", ({ value }) => {
  expect(isInput(value)).toBe(false);
  expect(() => readJson(SinkSchema, JSON.stringify(value))).toThrow();
});
