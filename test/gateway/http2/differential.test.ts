import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorCode } from "../../../src/gateway/http2/index.ts";
import type { Address, Field } from "../../support/carriers/exchange.ts";
import { connectionRows } from "../../support/http2/http2-connection-rows.ts";
import { type Engine, startEngine } from "../../support/http2/http2-engine.ts";
import {
  dataFrame,
  frame,
  type Frame,
  frameFlag,
  frameType,
  headersFrame,
  openFrames,
  type StreamEnd,
} from "../../support/carriers/http2-frames.ts";
import { type NodeEngine, startNodeEngine } from "../../support/http2/http2-node-engine.ts";
import { answered, begun, echoUnlessHeld, getHeader, resetWith } from "../../support/http2/http2-requests.ts";
import { streamRows } from "../../support/http2/http2-stream-rows.ts";
import { WindowClient } from "../../support/http2/http2-window-client.ts";

// Both servers of HTTP/2 that a gateway can listen with, side by side: what one does and the other does not is
// listed here, with the reason.

const limits = { concurrentStreams: 5, streamWindowBytes: 65_535, connectionWindowBytes: 131_070 };
type Outcome = "answered" | "passed over" | "closed" | `reset ${number}` | `GOAWAY ${number}`;

interface Difference {
  readonly node: Outcome;
  readonly why: string;
}

/** How node:http2 ends what the engine ends in another way. The engine's way is in the table of frames. */
const differences: ReadonlyMap<string, Difference> = new Map<string, Difference>(
  Object.entries({
    "§6.1: DATA behind the end of the body": {
      node: `GOAWAY ${ErrorCode.streamClosed}`,
      why: "§5.1 has a stream error for half-closed (remote); the other streams have done nothing wrong",
    },
    "§6.2: HEADERS behind the end of the body": {
      node: `GOAWAY ${ErrorCode.streamClosed}`,
      why: "§5.1 has a stream error for half-closed (remote)",
    },
    "§5.3.1 of RFC 7540: HEADERS that depend on themselves": {
      node: `GOAWAY ${ErrorCode.protocolError}`,
      why: "RFC 7540 §5.3.1 has a stream error",
    },
    "§6.3: PRIORITY of an idle stream that depends on itself": {
      node: "passed over",
      why: "RFC 7540 §5.3.1 has a stream error, which an idle stream cannot have",
    },
    "§6.3: PRIORITY of a wrong size": { node: `GOAWAY ${ErrorCode.frameSizeError}`, why: "§6.3 has a stream error" },
    "§6.4: a reset that crosses the answer": {
      node: "passed over",
      why: "node answers a turn later, and the reset is there by then; nobody waits for that answer",
    },
    "§6.9: WINDOW_UPDATE of nothing for a stream": {
      node: `GOAWAY ${ErrorCode.protocolError}`,
      why: "§6.9 has a stream error",
    },
    "§6.9.1: a stream's window above 2^31-1": {
      node: `GOAWAY ${ErrorCode.flowControlError}`,
      why: "§6.9.1 has a stream error",
    },
    "§6.9.1: more DATA than the stream's window": {
      node: `GOAWAY ${ErrorCode.flowControlError}`,
      why: "§6.9.1 lets a stream error do",
    },
    "§8.1.1: more body than was announced": {
      node: `GOAWAY ${ErrorCode.internalError}`,
      why: "§8.1.1 has a stream error of type PROTOCOL_ERROR: the fault is the client's",
    },
    "§5.1: DATA on a stream that both have closed": {
      node: "passed over",
      why: "§5.1 lets both be: we end the connection where we know that the client was the one to reset it",
    },
    "§5.1: HEADERS on a stream that was reset": { node: "passed over", why: "§5.1 lets both be" },
    "§5.1.1: a stream below one that was used": {
      node: "passed over",
      why: "§5.1.1 has an unexpected stream identifier end the connection",
    },
    "§6.1: padded DATA without its length": {
      node: `GOAWAY ${ErrorCode.protocolError}`,
      why: "§4.2 has FRAME_SIZE_ERROR for a frame too small for what must be in it",
    },
    "§6.2: padded HEADERS without its length": {
      node: `GOAWAY ${ErrorCode.protocolError}`,
      why: "§4.2 has FRAME_SIZE_ERROR for a frame too small for what must be in it",
    },
    "§6.3: PRIORITY on no stream": { node: "passed over", why: "§6.3 has it end the connection with PROTOCOL_ERROR" },
  }),
);

let own: Engine;
let node: NodeEngine;

beforeAll(async () => {
  own = await startEngine({
    serve: echoUnlessHeld,
    limits: { ...limits, resets: 1_000_000, pings: 1_000_000, emptyData: 1_000_000 },
  });
  node = await startNodeEngine(limits);
});

afterAll(async () => {
  await own[Symbol.asyncDispose]();
  await node[Symbol.asyncDispose]();
});

describe("the engine and node:http2", () => {
  const rows = [...streamRows, ...connectionRows];

  test.each(rows)("agree, or are known to differ, on $name", async ({ name, sent }) => {
    const [byOwn, byNode] = await Promise.all([own, node].map(({ address }) => outcomeOf(address, sent)));
    const difference = differences.get(name);
    expect(byNode).toStrictEqual(difference === undefined ? byOwn : difference.node);
    if (difference !== undefined) expect(byOwn).not.toStrictEqual(byNode);
  });

  test("differ in nothing that is not in the table", () => {
    const names = new Set(rows.map(({ name }) => name));
    expect([...differences.keys()].filter((name) => !names.has(name))).toStrictEqual([]);
  });
});

// Each octet that means something somewhere, in each place of a header.
const octets = Array.from('\0\x01\t\n\r \x7f\x80\xff!"#%(),/:;<@A[\\^`{|}~az09');
const instead = (name: string, value: string): Field[] =>
  getHeader.map(([known, was]) => [known, known === name ? value : was]);
const withoutAuthority = getHeader.filter(([name]) => name !== ":authority");
const headers: readonly (readonly Field[])[] = [
  ...octets.flatMap((octet): Field[][] => [
    [...getHeader, ["a", `b${octet}c`]],
    [...getHeader, ["a", `${octet}c`]],
    [...getHeader, ["a", `b${octet}`]],
    [...getHeader, [`a${octet}b`, "c"]],
    instead(":method", `A${octet}B`),
    instead(":scheme", `h${octet}t`),
    instead(":path", `/a${octet}b`),
    instead(":authority", `a${octet}b`),
    [...instead(":authority", `a${octet}b`), ["host", `a${octet}b`]],
    [...withoutAuthority, ["host", `a${octet}b`]],
    [...getHeader, ["te", octet]],
    [...getHeader, ["content-length", octet]],
  ]),
  ...["0", "00", "-0", "", "0, 0"].map((value): Field[] => [...getHeader, ["content-length", value]]),
  [...getHeader, ["content-length", "0"], ["content-length", "0"]],
  ...["", "Trailers", "trailers, gzip"].map((value): Field[] => [...getHeader, ["te", value]]),
  ...["*", "?a", "", "http://x/"].map((value) => instead(":path", value)),
  ...["", "gopher"].map((value) => instead(":scheme", value)),
  ...["", "a:b:c", "u@a"].map((value) => instead(":authority", value)),
  [[":method", "OPTIONS"], ...instead(":path", "*").slice(1)],
  [
    [":method", "CONNECT"],
    [":authority", "x:1"],
  ],
  [[":method", "CONNECT"], ...getHeader.slice(1)],
  ...["connection", "proxy-connection", "keep-alive", "upgrade", "transfer-encoding", ":protocol", ":status"].map(
    (name): Field[] => [...getHeader, [name, "x"]],
  ),
  ...getHeader.map((field): Field[] => [...getHeader, field]),
  ...getHeader.map(([absent]): Field[] => getHeader.filter(([name]) => name !== absent)),
  [...getHeader, ["host", "x"], ["host", "x"]],
  [...getHeader, ["host", "y"]],
];

/** Why the engine refuses a request that node:http2 serves. */
function reasonToRefuse(header: readonly Field[]): string | undefined {
  const fields = header.filter(([name]) => !name.startsWith(":"));
  // node:http2 drops the field and serves the request without it.
  if (fields.some(([name]) => !/^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(name))) return "§8.2.1: a name that is no token";
  if (fields.some(([, value]) => !/^[\t\x20-\x7e\x80-\xff]*$/.test(value))) return "§8.2.1: a control in a value";
  if (fields.some(([, value]) => /^[\t ]|[\t ]$/.test(value))) return "§8.2.1: white space around a value";
  const hosts = fields.filter(([name]) => name === "host").map(([, value]) => value);
  const authority = header.find(([name]) => name === ":authority")?.[1];
  if (hosts.some((host) => host !== authority)) return "§8.3.1: a Host that is not the authority";
  return undefined;
}

describe("of the headers that are made of each octet in each place", () => {
  test("the engine refuses what node:http2 refuses, and beside it only what has a reason", async () => {
    const [byOwn, byNode] = await Promise.all([own, node].map(({ address }) => judge(address)));
    const differing = headers.filter((_, i) => byOwn?.[i]?.kind !== byNode?.[i]?.kind);
    expect(differing.length).toBeGreaterThan(0);
    for (const header of differing) {
      const i = headers.indexOf(header);
      expect({ header, own: byOwn?.[i], node: byNode?.[i] }).toStrictEqual({
        header,
        own: resetWith(ErrorCode.protocolError),
        node: answered,
      });
      expect(reasonToRefuse(header), JSON.stringify(header)).toBeDefined();
    }
  });

  async function judge(address: Address): Promise<StreamEnd[]> {
    using connection = await openFrames(address);
    const ends: StreamEnd[] = [];
    for (const [i, header] of headers.entries()) {
      connection.send(headersFrame(2 * i + 1, header, frameFlag.endStream));
      ends.push(await connection.readEnd(2 * i + 1));
    }
    return ends;
  }
});

test("the engine and node:http2 give the same answers to the same calls, whatever their order and what is cancelled", async () => {
  const calls = fc.array(fc.record({ bytes: fc.nat({ max: 70_000 }), cancelled: fc.boolean() }), {
    maxLength: 5,
    minLength: 1,
  });
  const choices = fc.noShrink(fc.array(fc.nat({ max: 2 ** 30 }), { minLength: 100, maxLength: 100 }));
  const property = fc.asyncProperty(calls, choices, async (given, chosen) => {
    const [byOwn, byNode] = await Promise.all([own, node].map(({ address }) => callAll(address, given, chosen)));
    expect(byOwn).toStrictEqual(byNode);
  });
  await fc.assert(property, { numRuns: 25 });
});

/** Makes some calls at once and says what was answered to those that were not cancelled. */
async function callAll(
  address: Address,
  calls: readonly { readonly bytes: number; readonly cancelled: boolean }[],
  chosen: readonly number[],
): Promise<unknown> {
  using connection = await openFrames(address);
  let choice = 0;
  const client = new WindowClient(connection, (below) => (chosen[choice++ % chosen.length] ?? 0) % below, 65_535);
  const streams = calls.map(({ bytes }, i) => client.open(Buffer.alloc(bytes, `${String(i)}abc`)));
  for (const [i, { cancelled }] of calls.entries()) {
    const stream = streams[i];
    if (cancelled && stream !== undefined) client.cancel(stream);
  }
  await client.run();
  return streams.map(({ end, received }) => (end === "reset" ? end : Buffer.concat(received).toString("latin1")));
}

/** How stream 1, or 11 where there is none, ends behind these frames, if it does before those that are sent then. */
async function outcomeOf(address: Address, sent: readonly Frame[]): Promise<Outcome> {
  using connection = await openFrames(address);
  const streamId = sent.some((one) => (one.streamId & 0x7fff_ffff) === 1) ? 1 : 11;
  let outcome: Outcome | undefined;
  const readUntil = async (isLast: (one: Frame) => boolean): Promise<void> => {
    const last = await connection.readUntil((one) => {
      if (one.streamId === streamId || one.type === frameType.goAway) outcome ??= endBy(one);
      return outcome !== undefined || isLast(one);
    });
    if (last === undefined) outcome ??= "closed";
  };
  connection.send(...sent, frame(frameType.ping, 0, 0, Buffer.alloc(8)));
  await readUntil(({ type }) => type === frameType.ping);
  // node:http2 answers a PING at once and a request some turns later.
  for (const behind of [99, 101]) {
    if (outcome !== undefined) break;
    connection.send(begun(behind), dataFrame(behind, Buffer.from("x"), frameFlag.endStream));
    await readUntil((one) => one.streamId === behind && endBy(one) !== undefined);
  }
  return outcome ?? "passed over";
}

/** The end that a frame makes of its stream or of the connection, if it makes one. */
function endBy({ type, flags, payload }: Frame): Outcome | undefined {
  if (type === frameType.resetStream) return `reset ${payload.readUInt32BE(0)}`;
  if (type === frameType.goAway) return payload.readUInt32BE(4) === 0 ? undefined : `GOAWAY ${payload.readUInt32BE(4)}`;
  const mayEnd = type === frameType.headers || type === frameType.data;
  return mayEnd && (flags & frameFlag.endStream) !== 0 ? "answered" : undefined;
}
