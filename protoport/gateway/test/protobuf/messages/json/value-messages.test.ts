import { isDeepStrictEqual } from "node:util";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { ListValueSchema, StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import type { ReadState } from "../../../../src/protobuf/messages/json/parse-plain.ts";
import { toListMessage, toStructMessage, toValueMessage } from "../../../../src/protobuf/messages/json/plain-values.ts";

function parse(text: string): JsonValue {
  const json: JsonValue = JSON.parse(text);
  return json;
}

const newState = (): ReadState => ({ strings: 0, mayHaveLoneSurrogates: true });

// An older protobuf-es sets the prototype for the name `__proto__`.
const keepsPrototypeName = Object.hasOwn(fromJson(StructSchema, parse('{"__proto__":1}')).fields, "__proto__");

test.each([
  { text: "null", strings: 0 },
  { text: "true", strings: 0 },
  { text: "-0", strings: 0 },
  { text: "1.5e300", strings: 0 },
  { text: '""', strings: 1 },
  { text: '"\\ud83c\\udf31"', strings: 1 },
  { text: "[]", strings: 0 },
  { text: "{}", strings: 0 },
  { text: '[null,[false,"a"],{"b":"c","d":[{"e":0}]}]', strings: 5 },
  ...(keepsPrototypeName ? [{ text: '{"__proto__":{"constructor":1},"0":[]}', strings: 3 }] : []),
])("toValueMessage() converts $text like protobuf-es, and counts its strings", ({ text, strings }) => {
  const json = parse(text);
  const state = newState();
  const message = toValueMessage(json, state);
  const want = fromJson(ValueSchema, json);
  expect([isDeepStrictEqual(message, want), JSON.stringify(message)]).toEqual([true, JSON.stringify(want)]);
  expect(state.strings).toBe(strings);
});

test.each(["1e400", "[-1e400]", '"\\ud800"', '{"a":"\\udfff"}'])(
  "toValueMessage() throws for %s so that the exact reader is used",
  (text) => expect(() => toValueMessage(parse(text), newState())).toThrow(),
);

test("toListMessage() and toStructMessage() convert like protobuf-es", () => {
  const [list, object] = [[1, { a: "b" }], { a: [1], b: null }];
  expect(toListMessage(list, newState())).toStrictEqual(fromJson(ListValueSchema, list));
  expect(toStructMessage(object, newState())).toStrictEqual(fromJson(StructSchema, object));
});
