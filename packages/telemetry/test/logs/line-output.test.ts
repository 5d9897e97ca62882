import { PassThrough, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, test, vi } from "vitest";
import { LineOutput } from "../../src/logs/line-output.ts";

const kibibyte = (start: string): string => `${start}${"x".repeat(1018)}\n`;
const lostLine = (lines: number): string => `lost ${String(lines)}\n`;

test("lines of a turn leave together, in order", async () => {
  const stream = new PassThrough();
  const output = new LineOutput(stream, lostLine);
  using scheduled = vi.spyOn(globalThis, "setImmediate");
  output.write("one\n");
  output.write("two\n");
  expect(scheduled).toHaveBeenCalledOnce();
  await new Promise(setImmediate);
  expect(String(stream.read())).toBe("one\ntwo\n");
});

test("lines of one turn after the other leave by themselves", async () => {
  const stream = new PassThrough();
  const output = new LineOutput(stream, lostLine);
  for (const line of ["one\n", "two\n"]) {
    output.write(line);
    await new Promise(setImmediate);
    expect(String(stream.read())).toBe(line);
  }
});

test("a flush is over when all is out", async () => {
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
  for (const next of ["the next\n", "another\n"]) output.write(next);
  output.flush(() => stream.end());
  const lines = (await taken).split("\n");
  const kept = lines.filter((one) => one.startsWith("x")).length;
  expect(kept * line.length).toBeLessThan(5 * 1024 * 1024);
  expect(lines.slice(-4)).toEqual([`lost ${String(written - kept)}`, "the next", "another", ""]);
});

test("lines that are lost again, once earlier ones were counted, are counted by themselves", async () => {
  const taken: string[] = [];
  const waiting: (() => void)[] = [];
  // A reader that takes nothing until it is told to.
  const stream = new Writable({
    decodeStrings: false,
    write: (lines: string, _encoding, done) => {
      waiting.push(() => {
        taken.push(...lines.split("\n").filter((line) => line !== "" && !line.startsWith("other")));
        done();
      });
    },
  });
  const output = new LineOutput(stream, lostLine);
  const takeAll = async (): Promise<void> => {
    do {
      waiting.shift()?.();
      await new Promise(setImmediate);
    } while (waiting.length > 0);
  };
  for (const more of [100, 7]) {
    // One line crosses the bound, and the others are dropped.
    for (let i = 0; i < 4 * 1024 + 1 + more; i++) output.write(kibibyte("other"));
    await takeAll();
    output.write("the next\n");
    await takeAll();
  }
  expect(taken).toEqual(["lost 100", "the next", "lost 7", "the next"]);
});

test("lines that matter more find room where others are dropped, up to a bound of their own", async () => {
  const stream = new PassThrough();
  const output = new LineOutput(stream, lostLine);
  const written = 10_000;
  for (let i = 0; i < written; i++) {
    if (i % 10 === 0) output.reserve.write(kibibyte("first"));
    else output.write(kibibyte("other"));
  }
  for (let i = 0; i < written; i++) output.reserve.write(kibibyte("later"));
  const taken = text(stream);
  await new Promise<void>((resolve) => output.flush(() => resolve()));
  output.write("the next\n");
  output.flush(() => stream.end());
  const lines = (await taken).split("\n");
  const counts = ["first", "other", "later"].map((start) => lines.filter((one) => one.startsWith(start)).length);
  // 4 MiB of all, 4 MiB more of the others, and the ones that crossed the bounds.
  expect(counts).toEqual([written / 10, 4 * 1024 + 1 - 410, 4 * 1024 - (written / 10 - 410)]);
  expect(lines.slice(-3)).toEqual([expect.stringMatching(/^lost \d+$/), "the next", ""]);
});

test("a reader that has gone ends nothing", async () => {
  const stream = new PassThrough();
  const output = new LineOutput(stream, lostLine);
  stream.destroy(new Error("EPIPE"));
  output.write("one\n");
  await new Promise<void>((resolve) => output.flush(() => resolve()));
  expect(stream.destroyed).toBe(true);
});
