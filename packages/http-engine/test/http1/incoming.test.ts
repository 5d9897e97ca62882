import { expect, test, vi } from "vitest";
import { Incoming } from "../../src/http1/incoming.ts";

test("what arrives is held in proportion to what is not used, however long some of it never is", () => {
  const incoming = new Incoming();
  for (let i = 0; i < 1_000; i++) {
    incoming.add(Buffer.alloc(100, "x"));
    incoming.consume(incoming.bytes.byteLength - 10);
    incoming.retain();
  }
  expect(incoming.unusedBytes).toBe(10);
  expect(incoming.bytes.buffer.byteLength).toBeLessThan(1_000);
});

test("a chunk that is used up is not held", () => {
  const incoming = new Incoming();
  incoming.add(Buffer.alloc(60_000, "x"));
  incoming.consume(60_000);
  expect(incoming.bytes.byteLength).toBe(0);
});

test("what is cleared is forgotten, and the next section is found", () => {
  const incoming = new Incoming();
  incoming.add(Buffer.from("a: long field"));
  incoming.consumeSection();
  incoming.clear();
  expect([incoming.at, incoming.unusedBytes]).toEqual([0, 0]);
  incoming.add(Buffer.from("b\r\n\r\n"));
  expect(incoming.consumeSection()).toBe(3);
});

test("what is kept is copied once, into room that grows twofold", () => {
  const incoming = new Incoming();
  const chunk = Buffer.alloc(1_000, "x");
  incoming.add(chunk);
  incoming.retain();
  const kept = incoming.bytes;
  expect(kept.buffer).not.toBe(chunk.buffer);
  incoming.retain();
  expect(incoming.bytes).toBe(kept);
  incoming.add(Buffer.from("a"));
  const { buffer } = incoming.bytes;
  incoming.add(Buffer.alloc(999, "b"));
  expect(incoming.bytes.buffer).toBe(buffer);
});

test("room that is too small grows twofold, though not all of it was used", () => {
  const incoming = new Incoming();
  const used: number[] = [];
  for (const bytes of [1_000, 1, 1_000]) {
    incoming.add(Buffer.alloc(bytes, "x"));
    incoming.retain();
    used.push(incoming.bytes.buffer.byteLength);
  }
  expect(used).toEqual([1_000, 2_000, 4_000]);
});

test("what comes in two chunks is read as it came, whatever was kept before", () => {
  const incoming = new Incoming();
  incoming.add(Buffer.from("x".repeat(100)));
  incoming.retain();
  incoming.consume(100);
  incoming.add(Buffer.from("ab"));
  incoming.add(Buffer.from("cd"));
  expect(incoming.bytes.toString()).toBe("abcd");
});

test("what is kept is read as it came, whatever room there was before", () => {
  const incoming = new Incoming();
  incoming.add(Buffer.from("a".repeat(100)));
  incoming.retain();
  incoming.add(Buffer.from("b".repeat(100)));
  incoming.consume(150);
  incoming.retain();
  incoming.add(Buffer.from("c".repeat(10)));
  expect(incoming.bytes.toString()).toBe("b".repeat(50) + "c".repeat(10));
});

test("sections are found as in what has come so far, however it was divided, used and kept", () => {
  const wrong = textsOf(6).flatMap((text) =>
    [0, 5, 6, 11, 19, 24, 29, 31].flatMap((cuts) => {
      const expected = expectedOf(text, cuts).join();
      return [0, 1, 2].filter((mode) => sectionsOf(chunksOf(text, cuts), mode).join() !== expected).map(() => text);
    }),
  );
  expect(wrong).toEqual([]);
});

test("what was searched for the end of a section is not searched again", () => {
  const incoming = new Incoming();
  incoming.add(Buffer.from("u".repeat(50) + "x".repeat(50)));
  incoming.consumeSection();
  incoming.consume(50);
  incoming.retain();
  using found = vi.spyOn(Buffer.prototype, "indexOf");
  using read = vi.spyOn(Buffer.prototype, "toString");
  for (let at = 0; at < 1_000; at++) {
    incoming.add(Buffer.from("\r\nxxx"[at % 5] ?? ""));
    expect(incoming.consumeSection()).toBe("open");
  }
  expect(Math.max(...found.mock.calls.map(([, from], at) => sizeAt(at) - Number(from)))).toBeLessThan(6);
  expect(Math.max(...read.mock.calls.map(([, from], at) => sizeAt(at) - Number(from)))).toBeLessThan(6);
});

/** The bytes that were there at a search of the row above. */
function sizeAt(search: number): number {
  return 51 + search;
}

/** Every text of this length of an ordinary character and the two of a line end. */
function textsOf(length: number): string[] {
  return length === 0 ? [""] : textsOf(length - 1).flatMap((text) => ["a", "\r", "\n"].map((char) => text + char));
}

/** Divides a text behind each character whose bit is set. */
function chunksOf(text: string, cuts: number): string[] {
  const ends = Array.from(text, (_, at) => at + 1).filter((end) => end === text.length || (cuts >> (end - 1)) & 1);
  return ends.map((end, at) => text.slice(ends[at - 1] ?? 0, end));
}

/** Returns how many characters each section has, then what is left, or that it is broken; keeps in some modes. */
function sectionsOf(chunks: readonly string[], mode: number): (number | string)[] {
  const incoming = new Incoming();
  const found: (number | string)[] = [];
  // What was used before lies in front of it.
  if (mode > 0) incoming.add(Buffer.from("xx"));
  if (mode > 0) incoming.consume(1);
  for (const [nth, chunk] of chunks.entries()) {
    incoming.add(Buffer.from(chunk));
    if (nth === 0) incoming.consume(incoming.bytes.byteLength - chunk.length);
    for (;;) {
      const { at } = incoming;
      const end = incoming.consumeSection();
      if (end === "broken") return [...found, end];
      if (end === "open") break;
      found.push(end - at);
    }
    if (mode === 2) incoming.retain();
  }
  return [...found, incoming.consumePiece(1).toString(), incoming.consumePiece(9).toString(), incoming.unusedBytes];
}

function expectedOf(text: string, cuts: number): (number | string)[] {
  const found: (number | string)[] = [];
  let rest = "";
  for (const chunk of chunksOf(text, cuts)) {
    rest += chunk;
    for (;;) {
      const end = rest.startsWith("\r\n") ? 0 : rest.indexOf("\r\n\r\n") + 2;
      if (end === 1 && /(?<!\r)\n|\r[^\n]/.test(rest)) return [...found, "broken"];
      if (end === 1) break;
      found.push(end);
      rest = rest.slice(end + 2);
    }
  }
  return [...found, rest.slice(0, 1), rest.slice(1), 0];
}
