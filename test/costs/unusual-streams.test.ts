import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Reading } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { GatewayOptions } from "../../src/gateway/index.ts";
import type { HttpAnswer, HttpVersion } from "../support/carriers/exchange.ts";
import { openFetchUpload } from "../support/carriers/fetch.ts";
import { heldBytes } from "../support/carriers/held-bytes.ts";
import { openHttp1 } from "../support/carriers/http1-connection.ts";
import {
  dataFrame,
  frameBytes,
  frameFlag,
  frameType,
  headersFrame,
  openFrames,
} from "../support/carriers/http2-frames.ts";
import { startGreenhouse, type TestGreenhouse } from "../support/gateway/greenhouse.ts";
import { openUpload } from "../support/gateway/rest-upload.ts";
import { postHeader } from "../support/http2/http2-requests.ts";

// Streams over REST that no client sends by accident: a line of 100 MB, and 10 MB of which each byte comes alone, by ways
// that take more than a few microseconds for each 1 MB.

/** Where streams of clients go. */
const path = "/readings";

/** Four MiB of a line and as much again while it grows, windows, sockets on both sides, what is not collected yet. */
const heldBytesMax = 32 * 1024 * 1024;

/** Counts the characters of the readings' names. */
async function recordReadings(readings: AsyncIterable<Reading>): Promise<{ count: number }> {
  let count = 0;
  for await (const { sensor } of readings) count += sensor.length;
  return { count };
}

async function start(options: Partial<GatewayOptions> = {}): Promise<TestGreenhouse> {
  const selector = "greenhouse.v1.GreenhouseService.RecordReadings";
  const rules = [{ selector, pattern: { case: "post", value: path }, body: "*" }] as const;
  return await startGreenhouse({ recordReadings }, { rest: { rules }, ...options });
}

function messageOf({ body }: HttpAnswer): string {
  return JSON.parse(body.toString()).message;
}

const ways = [
  { name: "HTTP/1.1", version: "1.1" },
  { name: "HTTP/2", version: "2" },
  { name: "Fetch", version: "fetch" },
] as const satisfies readonly { name: string; version: HttpVersion | "fetch" }[];

describe.each(ways)("a line of 100 MB over $name", ({ version }) => {
  const piece = "x".repeat(100_000);
  const pieces = 1_000;

  /** Sends the line as fast as it is taken, to its end or to the answer. */
  async function send(greenhouse: TestGreenhouse): Promise<{ answer: HttpAnswer; heldMost: number; sent: number }> {
    const before = await heldBytes();
    let heldMost = 0;
    using upload = await openUpload(greenhouse, version, ["POST", path]);
    const seen: { answer?: HttpAnswer } = {};
    const answered = upload.readAnswer().then((answer) => (seen.answer = answer));
    upload.write('{"sensor":"');
    let sent = 0;
    for (; sent < pieces && seen.answer === undefined; sent += 1) {
      upload.write(piece);
      while (upload.waitingBytes > 0 && seen.answer === undefined) await nextTurn();
      if (sent % 100 === 0) heldMost = Math.max(heldMost, (await heldBytes()) - before);
    }
    upload.write('"}\n');
    upload.end();
    return { answer: await answered, heldMost, sent };
  }

  test("is refused, and little of it is held", async () => {
    await using greenhouse = await start();
    const { answer, heldMost, sent } = await send(greenhouse);
    expect([answer.httpStatus, messageOf(answer)]).toEqual([413, "line 1: message is larger than 4194304 bytes"]);
    expect(heldMost).toBeLessThan(heldBytesMax);
    expect(sent).toBeLessThan(pieces);
  });

  // Whoever allows such lines reads them on any carrier, and it takes seconds.
  if (version !== "1.1") return;
  test("is read where the limit allows it", { timeout: 120_000 }, async () => {
    await using greenhouse = await start({ readMaxBytes: 128 * 1024 * 1024 });
    const { answer } = await send(greenhouse);
    expect([answer.httpStatus, answer.body.toString()]).toEqual([200, `{"count":${pieces * piece.length}}`]);
  });
});

describe("a stream of which each byte comes alone is read, and little of it is held:", () => {
  const line = '{"sensor":"0123456789"}\n';
  /** Bytes that are sent before the server is waited for. */
  const blockBytes = 1_000 * line.length;

  function answerTo(megabytes: number): string {
    return `{"count":${blocksOf(megabytes) * 1_000 * 10}}`;
  }

  function blocksOf(megabytes: number): number {
    return Math.ceil((megabytes * 1_000_000) / blockBytes);
  }

  /** Sends so many blocks, and returns the most that was held meanwhile. */
  async function sendBlocks(megabytes: number, sendBlock: () => Promise<void>): Promise<number> {
    const before = await heldBytes();
    let heldMost = 0;
    for (let at = 1; at <= blocksOf(megabytes); at += 1) {
      await sendBlock();
      if (at % 10 === 0) heldMost = Math.max(heldMost, (await heldBytes()) - before);
    }
    return heldMost;
  }

  test("10 MB over HTTP/1.1", { timeout: 120_000 }, async () => {
    await using greenhouse = await start();
    using connection = await openHttp1(greenhouse.address);
    connection.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`);
    const block = Buffer.from(line.replaceAll(/[^]/g, "1\r\n$&\r\n").repeat(1_000));
    const heldMost = await sendBlocks(10, async () => {
      connection.write(block);
      while (connection.socket.writableLength > 0) await nextTurn();
    });
    connection.write("0\r\n\r\n");
    expect((await connection.readAnswer()).body.toString()).toBe(answerTo(10));
    expect(heldMost).toBeLessThan(heldBytesMax);
  });

  test("10 MB over HTTP/2", { timeout: 120_000 }, async () => {
    await using greenhouse = await start();
    using connection = await openFrames(greenhouse.address);
    const header = postHeader().map(([name, value]) => [name, name === ":path" ? path : value] as const);
    connection.send(headersFrame(1, header));
    const frames = Buffer.concat([...Buffer.from(line)].map((byte) => frameBytes(dataFrame(1, Buffer.of(byte)))));
    const block = Buffer.concat(Array.from({ length: 1_000 }, () => frames));
    const peer = { windowBytes: 65_535, body: "" };
    const readFrame = async (): Promise<boolean> => {
      const next = await connection.readFrame();
      if (next?.type === frameType.windowUpdate && next.streamId === 0)
        peer.windowBytes += next.payload.readUInt32BE(0);
      if (next?.type === frameType.data) peer.body += next.payload.toString();
      return next === undefined || (next.streamId === 1 && (next.flags & frameFlag.endStream) > 0);
    };
    const heldMost = await sendBlocks(10, async () => {
      // The windows of the stream are opened together with that of the connection.
      while (peer.windowBytes < blockBytes) await readFrame();
      peer.windowBytes -= blockBytes;
      connection.socket.write(block);
    });
    connection.send(dataFrame(1, Buffer.of(), frameFlag.endStream));
    while (!(await readFrame())) continue;
    expect(peer.body).toBe(answerTo(10));
    expect(heldMost).toBeLessThan(heldBytesMax);
  });

  test("1 MB over Fetch", { timeout: 120_000 }, async () => {
    await using greenhouse = await start();
    using upload = openFetchUpload(greenhouse.gateway.fetch, ["POST", path], []);
    const heldMost = await sendBlocks(1, async () => {
      for (let at = 0; at < blockBytes; at += 1) upload.write(line[at % line.length] ?? "");
      while (upload.waitingBytes > 0) await nextTurn();
    });
    upload.end();
    expect((await upload.readAnswer()).body.toString()).toBe(answerTo(1));
    expect(heldMost).toBeLessThan(heldBytesMax);
  });
});
