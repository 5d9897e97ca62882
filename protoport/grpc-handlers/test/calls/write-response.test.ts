import type { BinaryWriter } from "@bufbuild/protobuf/wire";
import { expect, test } from "vitest";
import { loadGarden } from "../garden.ts";
import { createResponseWriter } from "../../src/calls/write-response.ts";

type Written = { readonly text: string; writer?: BinaryWriter };
const { GetTree: definition } = loadGarden();
if (definition === undefined) throw new TypeError("the garden lacks GetTree");

const write = createResponseWriter(definition, (message: Written, writer) => {
  message.writer = writer;
  writer.raw(Buffer.from(message.text));
  if (message.text === "fails") throw new RangeError("too large");
  return writer;
});

const prefixBytes = 5;
const maxKeptBytes = 64 * 1024 - prefixBytes;

test.each([
  { name: "a short message", which: "the same", text: "a" },
  { name: "an empty message", which: "the same", text: "" },
  { name: "a message whose envelope has 64 KiB", which: "the same", text: "b".repeat(maxKeptBytes) },
  { name: "a longer message", which: "another", text: "c".repeat(maxKeptBytes + 1) },
  { name: "a message that fails", which: "another", text: "fails" },
])("after $name, the next message gets $which writer", ({ text, which }) => {
  const [first, next]: readonly Written[] = [{ text }, { text: "next" }];
  if (first === undefined || next === undefined) throw new TypeError("there are two messages");
  if (text === "fails") expect(() => write(first)).toThrow("too large");
  else expect(Buffer.from(write(first).bytes).toString()).toBe(text);
  expect(Buffer.from(write(next).withPrefix).toString()).toBe("\0\0\0\0\u0004next");
  expect(next.writer === first.writer).toBe(which === "the same");
});

test("a writer that a function ignores is not used again", () => {
  createResponseWriter(definition, () => ({ finish: () => Buffer.from("ignored") }))({});
  expect(Buffer.from(write({ text: "next" }).withPrefix).toString()).toBe("\0\0\0\0\u0004next");
});

test("a message inside another gets another writer", () => {
  const inner: Written = { text: "inner" };
  const outer: Written = {
    get text() {
      return Buffer.from(write(inner).bytes).toString();
    },
  };
  expect(Buffer.from(write(outer).bytes).toString()).toBe("inner");
  expect(inner.writer).not.toBe(outer.writer);
});
