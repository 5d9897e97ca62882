import { randomBytes } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Reading } from "../../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
// oxfmt-ignore
import { type Field, type HttpResponse, openUpload, startGreenhouse, type TestGreenhouse, type Upload, waitLimitMs,
  within } from "@protoport/testing";

// The windows of all bodies that are being decoded share 256 MiB: 32 windows of 8 MiB in zstd, or 16 windows of 16 MiB
// in br.

const path = "/readings";
/** The functions that are called when the handler reads a sensor, by sensor. */
const onRead = new Map<string, () => void>();

/** Calls `onRead` for each sensor. Waits forever at a sensor with the prefix `wait`, and stops at one with `enough`. */
async function recordReadings(readings: AsyncIterable<Reading>): Promise<{ count: number }> {
  let count = 0;
  for await (const { sensor } of readings) {
    count++;
    onRead.get(sensor)?.();
    if (sensor.startsWith("enough")) break;
    if (sensor.startsWith("wait")) await new Promise(() => {});
  }
  return { count };
}

async function start(): Promise<TestGreenhouse> {
  const selector = "greenhouse.v1.GreenhouseService.RecordReadings";
  const rules = [{ selector, pattern: { case: "post", value: path }, body: "*" }] as const;
  return await startGreenhouse({ recordReadings }, { rest: { rules } });
}

const coders = {
  gzip: (line: string) => gzipSync(line),
  zstd: (line: string) => zstdCompressSync(line),
  // Flushed but not ended, because a br stream can end only once, and more may follow.
  br: (line: string) => brotliCompressSync(line, { finishFlush: constants.BROTLI_OPERATION_FLUSH }),
};

/** A started body. Its response is `undefined` if the handler has read the first line. */
type Begun = { readonly upload: Upload; readonly response: HttpResponse | undefined };
type Version = Parameters<typeof openUpload>[1];
let sensorsSoFar = 0;

async function begin(
  greenhouse: TestGreenhouse,
  version: Version,
  coding: keyof typeof coders = "zstd",
  { kind = "more", more = "", header = [] }: { kind?: string; more?: string; header?: readonly Field[] } = {},
): Promise<Begun> {
  const sensor = `${kind} ${sensorsSoFar++}`;
  const upload = await openUpload(greenhouse, version, ["POST", path], [["content-encoding", coding], ...header]);
  const responded = upload.readResponse();
  responded.catch(() => undefined);
  const read = new Promise<undefined>((resolve) => onRead.set(sensor, () => resolve(undefined)));
  upload.write(coders[coding](`{"sensor":"${sensor}"}\n${more}`));
  return { upload, response: await within(Promise.race([read, responded]), "the response, or that the line is read") };
}

/** Starts a body as soon as the budget allows it. */
async function beginWhenFree(...args: Parameters<typeof begin>): Promise<Upload> {
  const sinceMs = performance.now();
  while (performance.now() - sinceMs < waitLimitMs) {
    const { upload, response } = await begin(...args);
    if (response === undefined) return upload;
    upload[Symbol.dispose]();
    await nextTurn();
  }
  throw new Error(`for ${waitLimitMs} ms there was no room for another body`);
}

/** Reserves windows for this many bodies until it is disposed. */
async function fill(greenhouse: TestGreenhouse, coding: keyof typeof coders, count: number): Promise<Disposable> {
  const reserved = new DisposableStack();
  for (let i = 0; i < count; i++) reserved.use(await beginWhenFree(greenhouse, "fetch", coding));
  return reserved;
}

test.each([
  { coding: "zstd", most: 32 },
  { coding: "br", most: 16 },
] as const)("the gateway refuses more than $most concurrent $coding bodies", async ({ coding, most }) => {
  await using greenhouse = await start();
  const others = await fill(greenhouse, coding, most);
  try {
    const { upload, response } = await begin(greenhouse, "1.1", coding);
    upload[Symbol.dispose]();
    const message = "too many br or zstd bodies are being decompressed at the same time";
    expect([response?.httpStatus, JSON.parse(String(response?.body))]).toMatchObject([429, { code: 8, message }]);
    const small = await begin(greenhouse, "1.1", "gzip");
    small.upload[Symbol.dispose]();
    expect(small.response).toBeUndefined();
  } finally {
    others[Symbol.dispose]();
  }
  (await beginWhenFree(greenhouse, "1.1", coding))[Symbol.dispose]();
});

/** A line that is longer than any decoder reads ahead. */
const muchMore = `{"sensor":"${randomBytes(250_000).toString("hex")}"}\n`;

describe.each(["1.1", "2"] as const)("the decompression window of a body over HTTP/%s", (version) => {
  let greenhouse: TestGreenhouse;
  let others: Disposable;
  beforeAll(async () => {
    greenhouse = await start();
    others = await fill(greenhouse, "zstd", 31);
  });
  afterAll(async () => {
    others[Symbol.dispose]();
    await greenhouse[Symbol.asyncDispose]();
  });

  test.each<{ name: string; end?: (upload: Upload) => void; options?: Parameters<typeof begin>[3] }>(
    // oxfmt-ignore
    [
      { name: "the body ends", end: (upload) => upload.end() },
      { name: "the client disconnects", end: (upload) => upload.reset() },
      { name: "the client disconnects while the handler waits", end: (upload) => upload.reset(),
        options: { kind: "wait" } },
      { name: "the client disconnects before the handler reads the rest", end: (upload) => upload.reset(),
        options: { kind: "wait", more: muchMore } },
      { name: "the deadline passes before the handler reads the rest",
        options: { kind: "wait", more: muchMore, header: [["connect-timeout-ms", "200"]] } },
      { name: "the deadline passes after the end of the body", end: (upload) => upload.end(),
        options: { kind: "wait", header: [["connect-timeout-ms", "200"]] } },
      { name: "the handler stops reading", options: { kind: "enough" } },
      { name: "the handler stops reading before the end of the body", options: { kind: "enough", more: muchMore } },
      { name: "the body is not valid", end: (upload) => upload.write("something else") },
    ],
  )("is released when $name", async ({ end = () => {}, options }) => {
    using upload = await beginWhenFree(greenhouse, version, "zstd", options);
    end(upload);
    using next = await beginWhenFree(greenhouse, version);
    next.end();
  });
});
