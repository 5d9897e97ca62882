import { describe, expect, test } from "vitest";
import { Incoming } from "../../../src/gateway/http1/incoming.ts";

test("what arrives is held in proportion to what is not used, however long some of it never is", () => {
  const incoming = new Incoming();
  for (let i = 0; i < 1_000; i++) {
    incoming.add(Buffer.alloc(100, "x"));
    incoming.use(incoming.bytes.byteLength - 10);
    incoming.keep();
  }
  expect(incoming.left).toBe(10);
  expect(incoming.bytes.buffer.byteLength).toBeLessThan(1_000);
});

test("a chunk that is used up is not held", () => {
  const incoming = new Incoming();
  incoming.add(Buffer.alloc(60_000, "x"));
  incoming.use(60_000);
  expect(incoming.bytes.byteLength).toBe(0);
});

test("what comes in two chunks is read as it came, whatever was kept before", () => {
  const incoming = new Incoming();
  incoming.add(Buffer.from("x".repeat(100)));
  incoming.keep();
  incoming.use(100);
  incoming.add(Buffer.from("ab"));
  incoming.add(Buffer.from("cd"));
  expect(incoming.bytes.toString()).toBe("abcd");
});

test("what is kept is read as it came, whatever room there was before", () => {
  const incoming = new Incoming();
  incoming.add(Buffer.from("a".repeat(100)));
  incoming.keep();
  incoming.add(Buffer.from("b".repeat(100)));
  incoming.use(150);
  incoming.keep();
  incoming.add(Buffer.from("c".repeat(10)));
  expect(incoming.bytes.toString()).toBe("b".repeat(50) + "c".repeat(10));
});

describe("a section that arrives in two chunks", () => {
  test.each([
    { name: "a carriage return alone", chunks: ["a: b\r", "c"], want: "broken" },
    { name: "a line feed alone", chunks: ["a: b", "\nc"], want: "broken" },
    { name: "a line feed behind a line end", chunks: ["a: b\r\n", "\nc"], want: "broken" },
    { name: "a line end", chunks: ["a: b\r", "\nc"], want: "open" },
  ])("is $want when between them is $name", ({ chunks: [first = "", second = ""], want }) => {
    const incoming = new Incoming();
    // What was used before lies in front of it.
    incoming.add(Buffer.from(`\r\n${first}`));
    incoming.use(2);
    expect(incoming.useSection()).toBe("open");
    incoming.keep();
    incoming.add(Buffer.from(second));
    expect(incoming.useSection()).toBe(want);
  });
});
