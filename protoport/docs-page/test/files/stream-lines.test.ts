import { expect, test } from "vitest";
import { collect } from "@protoport/testing/process";
import { isMessage, linesOf } from "../../src/files/stream-lines.ts";

test.each<{ readonly name: string; readonly chunks: readonly string[]; readonly want: readonly string[][] }>([
  { name: "two lines in one chunk", chunks: ["a\nb\n"], want: [["a", "b"]] },
  { name: "a line split into two chunks", chunks: ["a\nb", "c\n"], want: [["a"], ["bc"]] },
  { name: "a line split into three chunks", chunks: ["a", "b", "c\n"], want: [[], [], ["abc"]] },
  { name: "empty lines", chunks: ["a\n\n"], want: [["a", ""]] },
  { name: "a last line without a line feed", chunks: ["a\nb"], want: [["a"], ["b"]] },
  { name: "no chunks", chunks: [], want: [] },
])("linesOf yields $name as an array for each chunk", async ({ chunks, want }) => {
  const bytes = chunks.map((text) => new TextEncoder().encode(text));
  expect(await collect(linesOf(ReadableStream.from(bytes)))).toEqual(want);
});

test("linesOf decodes a character that is split into two chunks", async () => {
  const bytes = new TextEncoder().encode("ü\n");
  expect((await collect(linesOf(ReadableStream.from([bytes.slice(0, 1), bytes.slice(1)])))).flat()).toEqual(["ü"]);
});

test("linesOf yields no lines for a response without a body", async () =>
  expect(await collect(linesOf(null))).toEqual([]));

async function* loseConnection(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  yield new TextEncoder().encode("a\nb");
  throw new Error("lost");
}

test("linesOf yields the lines that arrived before the connection was lost", async () => {
  const lines = linesOf(ReadableStream.from(loseConnection()));
  expect((await lines.next()).value).toEqual(["a"]);
  await expect(lines.next()).rejects.toThrow("lost");
});

test.each([
  { line: '{"id":"1"}', want: true },
  { line: '{"error":5}', want: true },
  { line: '{"error":{"code":5}}', want: false },
  { line: '{"@error":{"code":5}}', want: false },
  { line: '{"a":{"@error":5}}', want: true },
  { line: "", want: false },
  { line: 'data: {"id":"1"}', want: true },
  { line: "data: {}", before: "event: end", want: false },
  { line: "data: {}", before: "data: {}", want: true },
  { line: "event: end", want: false },
  { line: "id: {", want: false },
])('isMessage returns $want if the line "$line" follows "$before" in a stream', ({ line, before = "", want }) => {
  expect(isMessage(line, before)).toBe(want);
});
