import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { LineOutput } from "../../src/operations/line-output.ts";

const lostLine = (lines: number): string => `lost ${String(lines)}\n`;

test("lines of a turn leave together, in order", async () => {
  const stream = new PassThrough();
  const output = new LineOutput(stream, lostLine);
  output.write("one\n");
  output.write("two\n");
  await new Promise(setImmediate);
  expect(String(stream.read())).toBe("one\ntwo\n");
});

test("whoever flushes is called when all is out", async () => {
  const stream = new PassThrough();
  const output = new LineOutput(stream, lostLine);
  output.write("one\n");
  await new Promise<void>((resolve) => output.flush(() => resolve()));
  expect(String(stream.read())).toBe("one\n");
});

test("lines that nobody takes are dropped from some megabytes on, and counted once somebody does", async () => {
  const stream = new PassThrough();
  const output = new LineOutput(stream, lostLine);
  const line = `${"x".repeat(1023)}\n`;
  const written = 10_000;
  for (let i = 0; i < written; i++) {
    output.write(line);
    if (i % 100 === 0) await new Promise(setImmediate);
  }
  const taken = text(stream);
  await new Promise<void>((resolve) => output.flush(() => resolve()));
  output.write("the next\n");
  output.flush(() => stream.end());
  const lines = (await taken).split("\n");
  const kept = lines.filter((one) => one.startsWith("x")).length;
  expect(kept * line.length).toBeLessThan(9 * 1024 * 1024);
  expect(lines.slice(-3)).toEqual([`lost ${String(written - kept)}`, "the next", ""]);
});

test("a reader that has gone ends nothing", async () => {
  const stream = new PassThrough();
  const output = new LineOutput(stream, lostLine);
  stream.destroy(new Error("EPIPE"));
  output.write("one\n");
  await new Promise<void>((resolve) => output.flush(() => resolve()));
  expect(stream.destroyed).toBe(true);
});
