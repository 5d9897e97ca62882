import { PassThrough, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, test, vi } from "vitest";
import { LineOutput } from "../../src/logs/line-output.ts";

const kibibyte = (start: string): string => `${start}${"x".repeat(1018)}\n`;
const formatDropped = (lines: number): string => `dropped ${String(lines)}\n`;

test("lines from one event loop turn are written in one batch", async () => {
  const stream = new PassThrough();
  const output = new LineOutput(stream, formatDropped);
  using scheduled = vi.spyOn(globalThis, "setImmediate");
  output.write("one\n");
  output.write("two\n");
  expect(scheduled).toHaveBeenCalledOnce();
  await new Promise(setImmediate);
  expect(String(stream.read())).toBe("one\ntwo\n");
});

test("lines from different event loop turns are written separately", async () => {
  const stream = new PassThrough();
  const output = new LineOutput(stream, formatDropped);
  for (const line of ["one\n", "two\n"]) {
    output.write(line);
    await new Promise(setImmediate);
    expect(String(stream.read())).toBe(line);
  }
});

test("flush calls its callback after all lines are written", async () => {
  const stream = new PassThrough();
  const output = new LineOutput(stream, formatDropped);
  output.write("one\n");
  await new Promise<void>((resolve) => output.flush(() => resolve()));
  expect(String(stream.read())).toBe("one\n");
});

test("lines above the buffer limit are dropped, and their number is reported", async () => {
  const stream = new PassThrough();
  const output = new LineOutput(stream, formatDropped);
  const line = `${"x".repeat(1023)}\n`;
  const written = 10_000;
  for (let i = 0; i < written; i++) {
    output.write(line);
    if (i % 100 === 0) await new Promise(setImmediate);
  }
  const read = text(stream);
  await new Promise<void>((resolve) => output.flush(() => resolve()));
  for (const next of ["the next\n", "another\n"]) output.write(next);
  output.flush(() => stream.end());
  const lines = (await read).split("\n");
  const writtenLines = lines.filter((one) => one.startsWith("x")).length;
  expect(writtenLines * line.length).toBeLessThan(5 * 1024 * 1024);
  expect(lines.slice(-4)).toEqual([`dropped ${String(written - writtenLines)}`, "the next", "another", ""]);
});

test("each report counts only the lines dropped since the previous report", async () => {
  const received: string[] = [];
  const pendingWrites: (() => void)[] = [];
  // This reader reads only when readAll is called.
  const stream = new Writable({
    decodeStrings: false,
    write: (lines: string, _encoding, done) =>
      void pendingWrites.push(() => {
        received.push(...lines.split("\n").filter((line) => line !== "" && !line.startsWith("other")));
        done();
      }),
  });
  const output = new LineOutput(stream, formatDropped);
  const readAll = async (): Promise<void> => {
    do {
      pendingWrites.shift()?.();
      await new Promise(setImmediate);
    } while (pendingWrites.length > 0);
  };
  for (const more of [100, 7]) {
    // The first line exceeds the limit, and the others are dropped.
    for (let i = 0; i < 4 * 1024 + 1 + more; i++) output.write(kibibyte("other"));
    await readAll();
    output.write("the next\n");
    await readAll();
  }
  expect(received).toEqual(["dropped 100", "the next", "dropped 7", "the next"]);
});

test("reserve.write has a separate buffer limit from write", async () => {
  const stream = new PassThrough();
  const output = new LineOutput(stream, formatDropped);
  const written = 10_000;
  for (let i = 0; i < written; i++) {
    if (i % 10 === 0) output.reserve.write(kibibyte("first"));
    else output.write(kibibyte("other"));
  }
  for (let i = 0; i < written; i++) output.reserve.write(kibibyte("later"));
  const read = text(stream);
  await new Promise<void>((resolve) => output.flush(() => resolve()));
  output.write("the next\n");
  output.flush(() => stream.end());
  const lines = (await read).split("\n");
  const counts = ["first", "other", "later"].map((start) => lines.filter((one) => one.startsWith(start)).length);
  // 4 MiB of ordinary lines, 4 MiB of reserve lines, and the lines that exceeded the limits.
  expect(counts).toEqual([written / 10, 4 * 1024 + 1 - 410, 4 * 1024 - (written / 10 - 410)]);
  expect(lines.slice(-3)).toEqual([expect.stringMatching(/^dropped \d+$/), "the next", ""]);
});

test("write and flush to a destroyed stream do not throw", async () => {
  const stream = new PassThrough();
  const output = new LineOutput(stream, formatDropped);
  stream.destroy(new Error("EPIPE"));
  output.write("one\n");
  const error = await new Promise<Error | undefined>((resolve) => output.flush(resolve));
  expect([stream.destroyed, error]).toEqual([true, expect.any(Error)]);
});
