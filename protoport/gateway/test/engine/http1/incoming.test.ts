import { expect, test, vi } from "vitest";
import { Incoming } from "../../../src/engine/http1/incoming.ts";

test("Incoming uses memory in proportion to the unconsumed bytes", () => {
  const incoming = new Incoming();
  for (let i = 0; i < 1_000; i++) {
    incoming.add(Buffer.alloc(100, "x"));
    incoming.consume(incoming.bytes.byteLength - 10);
    incoming.retain();
  }
  expect(incoming.unusedBytes).toBe(10);
  expect(incoming.bytes.buffer.byteLength).toBeLessThan(1_000);
});

test("a completely consumed chunk is not kept", () => {
  const incoming = new Incoming();
  incoming.add(Buffer.alloc(60_000, "x"));
  incoming.consume(60_000);
  expect(incoming.bytes.byteLength).toBe(0);
});

test("clear() drops all bytes and the search state", () => {
  const incoming = new Incoming();
  incoming.add(Buffer.from("a: long field"));
  incoming.consumeSection();
  incoming.clear();
  expect([incoming.at, incoming.unusedBytes]).toEqual([0, 0]);
  incoming.add(Buffer.from("b\r\n\r\n"));
  expect(incoming.consumeSection()).toBe(3);
});

test("retain() copies the bytes of a chunk only once", () => {
  const incoming = new Incoming();
  const chunk = Buffer.alloc(1_000, "x");
  incoming.add(chunk);
  incoming.retain();
  const retained = incoming.bytes;
  expect(retained.buffer).not.toBe(chunk.buffer);
  incoming.retain();
  expect(incoming.bytes).toBe(retained);
  incoming.add(Buffer.from("a"));
  const { buffer } = incoming.bytes;
  incoming.add(Buffer.alloc(999, "b"));
  expect(incoming.bytes.buffer).toBe(buffer);
});

test("a buffer doubles when added bytes do not fit", () => {
  const incoming = new Incoming();
  const sizes: number[] = [];
  for (const bytes of [1_000, 1, 1_000]) {
    incoming.add(Buffer.alloc(bytes, "x"));
    incoming.retain();
    sizes.push(incoming.bytes.buffer.byteLength);
  }
  expect(sizes).toEqual([1_000, 2_000, 4_000]);
});

test("two chunks are joined after retained bytes were consumed", () => {
  const incoming = new Incoming();
  incoming.add(Buffer.from("x".repeat(100)));
  incoming.retain();
  incoming.consume(100);
  incoming.add(Buffer.from("ab"));
  incoming.add(Buffer.from("cd"));
  expect(incoming.bytes.toString()).toBe("abcd");
});

test("bytes that are retained twice stay unchanged", () => {
  const incoming = new Incoming();
  incoming.add(Buffer.from("a".repeat(100)));
  incoming.retain();
  incoming.add(Buffer.from("b".repeat(100)));
  incoming.consume(150);
  incoming.retain();
  incoming.add(Buffer.from("c".repeat(10)));
  expect(incoming.bytes.toString()).toBe("b".repeat(50) + "c".repeat(10));
});

test("field sections are found at any split of the bytes", () => {
  const wrong = textsOf(6).flatMap((text) =>
    [0, 5, 6, 11, 19, 24, 29, 31].flatMap((cuts) => {
      const expected = expectedOf(text, cuts).join();
      return [0, 1, 2].filter((mode) => sectionsOf(chunksOf(text, cuts), mode).join() !== expected).map(() => text);
    }),
  );
  expect(wrong).toEqual([]);
});

test("the search for the end of a section skips bytes already searched", () => {
  const incoming = new Incoming();
  incoming.add(Buffer.from("u".repeat(50) + "x".repeat(50)));
  incoming.consumeSection();
  incoming.consume(50);
  incoming.retain();
  using searches = vi.spyOn(Buffer.prototype, "indexOf");
  using reads = vi.spyOn(Buffer.prototype, "toString");
  for (let at = 0; at < 1_000; at++) {
    incoming.add(Buffer.from("\r\nxxx"[at % 5] ?? ""));
    expect(incoming.consumeSection()).toBe("open");
  }
  expect(Math.max(...searches.mock.calls.map(([, from], at) => sizeAt(at) - Number(from)))).toBeLessThan(6);
  expect(Math.max(...reads.mock.calls.map(([, from], at) => sizeAt(at) - Number(from)))).toBeLessThan(6);
});

/** Returns how many bytes a search in the test above has. */
function sizeAt(search: number): number {
  return 51 + search;
}

/** Returns every string with this length that consists of a, CR and LF. */
function textsOf(length: number): string[] {
  return length === 0 ? [""] : textsOf(length - 1).flatMap((text) => ["a", "\r", "\n"].map((char) => text + char));
}

/** Splits a string after each character whose bit is set. */
function chunksOf(text: string, cuts: number): string[] {
  const ends = Array.from(text, (_, at) => at + 1).filter((end) => end === text.length || (cuts >> (end - 1)) & 1);
  return ends.map((end, at) => text.slice(ends[at - 1] ?? 0, end));
}

/** Returns each section's length, then the rest, or "invalid". Retains bytes in mode 2. */
function sectionsOf(chunks: readonly string[], mode: number): (number | string)[] {
  const incoming = new Incoming();
  const found: (number | string)[] = [];
  // Preceded by consumed bytes.
  if (mode > 0) incoming.add(Buffer.from("xx"));
  if (mode > 0) incoming.consume(1);
  for (const [nth, chunk] of chunks.entries()) {
    incoming.add(Buffer.from(chunk));
    if (nth === 0) incoming.consume(incoming.bytes.byteLength - chunk.length);
    for (;;) {
      const { at } = incoming;
      const end = incoming.consumeSection();
      if (end === "invalid") return [...found, end];
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
      if (end === 1 && /(?<!\r)\n|\r[^\n]/.test(rest)) return [...found, "invalid"];
      if (end === 1) break;
      found.push(end);
      rest = rest.slice(end + 2);
    }
  }
  return [...found, rest.slice(0, 1), rest.slice(1), 0];
}
