import { create, type DescMessage, isFieldSet, toJsonString } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Type } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
// oxfmt-ignore
import { createJsonFieldReader, type FieldNotes, readJson, readPartialJson
} from "../../../../../../src/protobuf/messages/json/index.ts";
import { createCompiledReaders } from "../../../../../../src/protobuf/messages/json/compiled-reader.ts";
import { countStrings, parsePlain } from "../../../../../../src/protobuf/messages/json/parse-plain.ts";
import { bailOut } from "../../../../../../src/protobuf/messages/codegen.ts";
import { makeBook, makeBooks } from "../../../../../../../testing/src/gateway/books.ts";
import { SinkSchema } from "../../../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { LegacySchema, Shade } from "../../../../../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { BookSchema, ImportBooksRequestSchema } from "../../../../../../../testing/src/gen/library/v1/library_pb.ts";
import { costRatio } from "../../../../../../../testing/src/cost-ratio.ts";
import { readBothWays } from "../../../../../../../testing/src/gateway/both-readers.ts";
import { messageIn, stringField } from "../../../../../../../testing/src/gateway/file-init.ts";
import { Dice, numRunsOf, testSeed } from "@protoport/testing/process";

// Returns a JSON text's value, or `undefined` if the value and the text differ in their number of strings.
function parseWhole(text: string, canonical: boolean): unknown {
  const plain = parsePlain(text, canonical);
  return plain && countStrings(plain.value, plain.mayHaveLoneSurrogates) === plain.strings ? plain.value : undefined;
}

describe("parsePlain() and countStrings()", () => {
  test.each([
    "{}",
    " [ ] ",
    '{"a":"b","c":["d",{"e":1,"f":true,"g":null}]}',
    '{"a":"\\"b\\\\","c":"\\n\\u0041"}',
    '{"a":"\\\\"}',
    '{"a":"x: {[.5e3]}"}',
    '{"__proto__":{"a":"b"},"constructor":1}',
    "[1.0,-2.50]",
    "[0.1,1.5,1e-7,123456789012.345]",
    "[9007199254740993,1.7976931348623157e308]",
    "[0.3333333333333333,-12345678901234.18,0.8999999999999999999,2.0000000001,2.99999999]",
    `${"[".repeat(100)}${"]".repeat(100)}`,
    '"\\ud83c\\udf31"',
    "null",
  ])("accept %s without a fallback", (text) => expect(parseWhole(text, false)).toEqual(JSON.parse(text)));

  test.each([
    ["a duplicate name", '{"a":1,"b":2,"a":1}'],
    ["a nested duplicate name", '[{"a":{"b":"x","b":"x"}}]'],
    ["a duplicate name after an object", '{"a":{"b":1},"a":2}'],
    ["__proto__ as a duplicate name", '{"__proto__":1,"__proto__":1}'],
    ["an escape in a name", '{"\\u0061":1}'],
    ["an escaped quote in a name, followed by white space", '{"\\"" \t\r\n:1}'],
    ["a lone surrogate", '["\\ud800"]'],
    ["a lone surrogate in an object", '{"a":["\\udfff\\ud800"]}'],
    ["a number that is too large", "[1e400]"],
    ["a number that is too small", "[1e-400]"],
    ["a fraction that is rounded to an integer", "[1.00000000000000000001]"],
    ["a large fraction that is rounded to an integer", '{"a":9007199254740990.7}'],
    ["a fraction of nines that is rounded to an integer", "[0.99999999999999999999]"],
    ["a large number ending in .5 that is rounded to an integer", "[4503599627370497.5]"],
    ["an integer with an exponent", "[1E3]"],
    ["an integer with a fraction and an exponent", "[1.5e1]"],
    ["101 levels of arrays", `${"[".repeat(101)}${"]".repeat(101)}`],
    ["101 levels of objects", `${'{"a":'.repeat(101)}1${"}".repeat(101)}`],
    ["a byte order mark", "\ufeff{}"],
    ["text after the value", "{} {}"],
    ["an empty string", ""],
    ["an unterminated string", '"a'],
    ["a backslash at the end", '"\\'],
    ["a backslash outside a string", '\\"a"'],
  ])("fall back for %s to the exact reader", (_, text) => expect(parseWhole(text, false)).toBeUndefined());

  test.each(["[1.0]", "[1e0]", "[-0.0]"])(
    "fall back for %s to the exact reader if integers must be canonical",
    (text) => expect([parseWhole(text, true), parseWhole("[1.5]", true)]).toEqual([undefined, [1.5]]),
  );
});

test("an escaped name is read correctly after a name of one backslash", () => {
  // V8 13 and 14 read the second text as if its name were a backslash (nodejs/node#63785).
  const parsed: unknown = JSON.parse('{"h":[],"\\\\":0}');
  expect(parsed).toBeDefined();
  expect(readJson(SinkSchema, '{"labels":{"h":"1","\\"":"2"}}').labels).toEqual({ h: "1", '"': "2" });
});

describe("a JSON name that two fields share", () => {
  // proto2 allows two fields to share a JSON name.
  const { INT64 } = FieldDescriptorProto_Type;
  const field = ["id", "parent_id"].map((name, at) => ({ ...stringField(name, at + 1), jsonName: "id", type: INT64 }));
  const desc = messageIn({ name: "order.proto", messageType: [{ name: "Order", field }] }, "Order");

  test.each([
    { text: '{"id":"7"}', want: { id: 7n } },
    { text: '{"parent_id":"7"}', want: { parentId: 7n } },
    { text: '{"parent_id":"7","id":"8"}', want: { parentId: 7n, id: 8n } },
  ])("in $text selects the field with that proto name", ({ text, want }) => {
    expect(readJson(desc, text)).toEqual(create(desc, want));
    const notes = { paths: [], repeated: 0 };
    expect(readPartialJson(desc, text, {}, undefined, undefined, notes).message).toEqual(create(desc, want));
  });

  test("in a single-field body selects the field with that proto name", () => {
    const message = create(desc);
    for (const id of desc.fields.slice(0, 1))
      createJsonFieldReader(id, {}, { bound: new Map(), sameAsBound: false })(message, Buffer.from("7"));
    expect(message).toEqual(create(desc, { id: 7n }));
  });
});

test("a null proto2 field stays unset in a message with path fields", () => {
  const begun = create(LegacySchema, { name: "a" });
  const rules = { bound: new Map(), sameAsBound: false };
  const { message } = readPartialJson(LegacySchema, '{"number":null,"shade":"SHADE_DARK"}', {}, rules, begun);
  expect(message).toBe(begun);
  expect(message).toEqual(create(LegacySchema, { name: "a", shade: Shade.DARK }));
  expect(isFieldSet(message, LegacySchema.field.number)).toBe(false);
});

test.each(["pageCount", "rating", "id", "inPrint", "title", "genre", "authors", "publishTime", "price"])(
  "the field %s refuses an object whose toString is null",
  (name) => {
    const reading = (): unknown => readJson(BookSchema, `{"${name}":{"toString":null,"valueOf":null}}`);
    expect(reading).toThrow(ConnectError);
    const readers = createCompiledReaders(false);
    const state = { strings: 0, mayHaveLoneSurrogates: false };
    expect(() => readers.readerOf(BookSchema).read({ [name]: { toString: null, valueOf: null } }, state)).toThrow(
      expect.toSatisfy((thrown) => thrown === bailOut),
    );
  },
);

test("common JSON is read on the fast path", () => {
  const readers = createCompiledReaders(false);
  const books = create(ImportBooksRequestSchema, { books: makeBooks(100) });
  const named = toJsonString(BookSchema, makeBook(1), { useProtoFieldName: true, enumAsInteger: true });
  const read = (desc: DescMessage, text: string): unknown => {
    const { value = null, strings } = parsePlain(text, false) ?? {};
    const state = { strings: 0, mayHaveLoneSurrogates: false };
    const message = readers.readerOf(desc).read(value, state);
    expect(state.strings).toBe(strings);
    return message;
  };
  expect(read(ImportBooksRequestSchema, toJsonString(ImportBooksRequestSchema, books))).toEqual(books);
  expect(read(BookSchema, named)).toEqual(makeBook(1));
});

test("the fast path and the exact reader agree on any text", () => {
  const count = numRunsOf(1_500);
  let accepted = 0;
  for (let i = 0; i < count; i++) {
    const { isAccepted, problem } = readBothWays(new Dice(testSeed * 1_000_003 + i));
    expect(problem).toBeUndefined();
    if (isAccepted) accepted++;
  }
  expect(accepted).toBeGreaterThan(count / 3);
});

describe("the fallback to the exact reader", () => {
  const strings = `"${"a".repeat(20)}",`.repeat(10_000);
  test.each([
    ["an unknown name at the end", `{"tags":[${strings}"a"],"x":1}`],
    ["a duplicate name at the end", `{"tags":[${strings}"a"],"fString":"a","fString":"b"}`],
    ["text after the value", `{"tags":[${strings}"a"]}{`],
    ["escaped quotes and a wrong value", `{"tags":["${'\\"'.repeat(100_000)}"],"fBool":1}`],
    ["escaped quotes in an unterminated string", `{"tags":["${'\\"'.repeat(100_000)}`],
    ["many fractions that are zero", `{"doubles":[${"0.00000000000000000,".repeat(10_000)}0],"x":1}`],
  ])("JSON with %s takes at most four times the exact reader's time", async (_, text) => {
    const outcome = (notes?: FieldNotes) => (): void => {
      try {
        readPartialJson(SinkSchema, text, {}, undefined, undefined, notes);
      } catch (error) {
        expect(error).toBeInstanceOf(ConnectError);
      }
    };
    const exactly = outcome({ paths: [], repeated: 0 });
    expect(await costRatio(outcome(), exactly)).toBeLessThan(4);
  });
});
