import { create, toJsonString } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { makeBooks } from "../../support/gateway/books.ts";
import { createJsonMessageWriter, type WriteJsonOptions } from "../../../src/gateway/json/index.ts";
import { createMadeWriters, writeQuickly } from "../../../src/gateway/json/made-writer.ts";
import { SinkSchema } from "../../gen/kitchensink/v1/kitchen_sink_pb.ts";
import { BookSchema, ListBooksResponseSchema } from "../../gen/library/v1/library_pb.ts";
import { Dice } from "../../support/dice.ts";
import { writeRandomJson } from "../../support/gateway/both-json-writers.ts";
import { writeByProtobufEs } from "../../support/gateway/json-oracle.ts";
import { randomMessageTypes, randomTypes, rollMessage } from "../../support/gateway/random-message.ts";
import { numRunsOf, testSeed } from "../../support/test-seed.ts";
import { isSince } from "../../support/peer-version.ts";

const messagesPerType = numRunsOf(8);

// The text, or that there is none.
function outcomeOf(write: () => string): string {
  try {
    return write();
  } catch {
    return "refused";
  }
}

// Older versions of protobuf-es write some messages wrong, such as a negative Duration or a key `__proto__`.
test
  .runIf(isSince("@bufbuild/protobuf", "2.16"))
  .each<WriteJsonOptions>([
    {},
    { registry: randomTypes },
    { registry: randomTypes, alwaysEmitImplicit: true },
    { registry: randomTypes, useProtoFieldName: true, enumAsInteger: true },
  ])("a message is written byte for byte as protobuf-es writes it, under %o", (options) => {
  const dice = new Dice(testSeed);
  let written = 0;
  for (const desc of randomMessageTypes) {
    const write = createJsonMessageWriter(desc, options);
    for (let i = 0; i < messagesPerType; i++) {
      const message = rollMessage(dice, desc);
      const want = outcomeOf(() => writeByProtobufEs(desc, message, options));
      if (outcomeOf(() => write(message)) !== want)
        expect(
          outcomeOf(() => write(message)),
          desc.typeName,
        ).toBe(want);
      if (want !== "refused") written++;
    }
  }
  expect(written).toBeGreaterThan((randomMessageTypes.length * messagesPerType) / 2);
});

test.each([255, 256, 257, 512, 600])("a list of %i items is written whole and in order", (count) => {
  const list = create(ListBooksResponseSchema, { books: makeBooks(count) });
  expect(createJsonMessageWriter(ListBooksResponseSchema)(list)).toBe(toJsonString(ListBooksResponseSchema, list));
});

test("whatever the message, code made for its type writes it as the exact writer does, or not at all", () => {
  const ways = { quick: 0, left: 0 };
  const first = testSeed * 1_000_003;
  for (let i = 0; i < numRunsOf(1_000); i++) {
    const { quick, left } = writeRandomJson(first + i);
    ways.quick += quick;
    ways.left += left;
  }
  expect(ways.quick).toBeGreaterThan(ways.left / 2);
});

test("what services usually answer is written by made code", () => {
  const [book] = makeBooks(1);
  const writer = createMadeWriters({}).of(BookSchema);
  expect(writer && book && writeQuickly(writer, book)).toEqual({ text: book && toJsonString(BookSchema, book) });
});

test("a list of a Struct is written as it is, whatever its toJSON says", () => {
  const list = Object.assign([1], { toJSON: () => "other" });
  const message = create(SinkSchema, { struct: { list } });
  expect(createJsonMessageWriter(SinkSchema, {})(message)).toBe(writeByProtobufEs(SinkSchema, message, {}));
});
