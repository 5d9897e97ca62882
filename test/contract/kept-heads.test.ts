import { setImmediate as nextTurn } from "node:timers/promises";
import type { HandlerContext } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createBearerAuth, principalKey, type TokenVerifier } from "../../packages/auth/src/index.ts";
import { type Http1Connection, openHttp1 } from "../../packages/testing/src/carriers/http1-connection.ts";
import { Dice } from "../../packages/testing/src/dice.ts";
import {
  startGreenhouse,
  type TestGreenhouse,
  waterBedProcedure,
} from "../../packages/testing/src/gateway/greenhouse.ts";
import { numRunsOf, testSeed } from "../../packages/testing/src/test-seed.ts";

// What a connection remembers of a head must never reach the request of another: callers share the connections of a
// proxy. So heads that differ in one byte follow each other on a few connections, and the oracle is a fresh connection.

/** Requests in all; `KEPT_HEADS` asks for more of them. */
const requests = Number(process.env["KEPT_HEADS"] ?? numRunsOf(400));
const connections = 64;

/** Milliseconds for each request, most of which a machine needs that is busy with something else. */
const requestMs = 10;

// The last byte of a token is the one that tells, and changing one bit of it makes a caller another.
const callers = new Map(["b", "c", "B"].map((end) => [`token-0123456789-${end}`, `caller ${end}`]));
const hosts = ["a.example:80", "c.example:80"];
// By HTTP/1.0, a connection ends with the answer.
const versions = [...Array<string>(7).fill("HTTP/1.1"), "HTTP/1.0"];

const verifier: TokenVerifier = {
  verify: ({ text }) => {
    const subject = callers.get(text);
    if (subject === undefined) return { kind: "unknown", reason: "it is none of the test's" };
    return { kind: "principal", subject, issuer: undefined, scopes: "all" };
  },
};

let greenhouse: TestGreenhouse;

beforeAll(async () => {
  greenhouse = await startGreenhouse(
    {
      getReading: ({ sensor }, context) => ({ sensor: `${sensor} ${seen(context)}` }),
      waterBed: ({ bed, liters, note }, context) => ({ bed, liters, note: `${note} ${seen(context)}` }),
    },
    {
      admit: createBearerAuth(verifier, { realm: "greenhouse" }).admit,
      // A connection is opened before its first request is drawn, and a busy machine has others to answer until then.
      limits: { headerTimeoutMs: 60_000 },
      // It would keep each answer, with its connection: 3 GB of a million.
      onAnswer: () => {},
    },
  );
});

afterAll(() => greenhouse[Symbol.asyncDispose]());

/** Everything that a handler can see of a head. */
function seen({ values, url, requestMethod, requestHeader }: HandlerContext): string {
  return JSON.stringify([values.get(principalKey)?.subject, requestMethod, url, [...requestHeader]]);
}

const body = `{"liters":3,"note":"x"}`;
const sized = `Content-Length: ${body.length}\r\nContent-Type: application/json\r\n`;
const kinds = [
  { line: "GET /sensors/roof/reading", more: "", body: "" },
  { line: "POST /beds/7:water", more: sized, body },
  { line: `POST ${waterBedProcedure}`, more: sized, body },
];

function drawRequest(dice: Dice): string {
  const { line, more, body: sent } = dice.oneOf(kinds);
  const token = dice.oneOf([...callers.keys()]);
  const version = dice.oneOf(versions);
  const host = dice.oneOf(hosts);
  const head = `${line} ${version}\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\nX-Note: 1\r\n${more}\r\n`;
  // Half of them as a client sends them, so that what is remembered is right as often as it is not.
  return (dice.roll(2) === 0 ? head : withOtherByte(head, dice)) + sent;
}

function withOtherByte(head: string, dice: Dice): string {
  const at = dice.roll(head.length);
  const octet = head.charCodeAt(at);
  const put = dice.oneOf(["", " ", ` ${head[at]}`, String.fromCharCode(octet ^ 1), String.fromCharCode(octet ^ 0x20)]);
  return head.slice(0, at) + put + head.slice(at + 1);
}

/** Answers of fresh connections, by the bytes of the request. */
const fresh = new Map<string, string>();

/** Returns everything that a connection answers to one request, after which the client ends its side. */
async function freshAnswer(request: string): Promise<string> {
  const known = fresh.get(request);
  if (known !== undefined) return known;
  using connection = await openHttp1(greenhouse.address);
  const answer = await lastAnswer(connection, request);
  fresh.set(request, answer);
  return answer;
}

async function lastAnswer(connection: Http1Connection, request: string): Promise<string> {
  connection.write(request);
  connection.socket.end();
  return withoutDate((await connection.readToEnd()).toString("latin1"));
}

async function nextAnswer(connection: Http1Connection): Promise<string> {
  const { head, body: answered } = await connection.readAnswer();
  return withoutDate(head + answered.toString("latin1"));
}

function withoutDate(answer: string): string {
  return answer.replaceAll(/^date: .*\r\n/gm, "");
}

/** Whether more may be sent behind a request: it was whole, there was nothing behind it, and it was HTTP/1.1. */
function isKept(answer: string): boolean {
  return !answer.includes("\r\nconnection: close\r\n");
}

interface Exchanged {
  readonly request: string;
  readonly got: string;
  readonly want: string;
}

/** Sends so many requests one after another, at times several in a chunk or one in several; returns the wrong answers. */
async function talk(dice: Dice, count: number): Promise<Exchanged[]> {
  const wrong: Exchanged[] = [];
  for (let sent = 0; sent < count && wrong.length === 0;) {
    using connection = await openHttp1(greenhouse.address);
    for (let lasts = true; lasts && sent < count;) {
      const run = Array.from({ length: 1 + dice.roll(3) }, () => drawRequest(dice));
      const wants = await Promise.all(run.map(freshAnswer));
      const ending = wants.findIndex((want) => !isKept(want));
      lasts = ending < 0;
      const before = lasts ? run : run.slice(0, ending);
      await writeInParts(connection, before.join(""), dice);
      const got: string[] = [];
      for (const _ of before) got.push(await nextAnswer(connection));
      if (!lasts) got.push(await lastAnswer(connection, run[ending] ?? ""));
      sent += got.length;
      wrong.push(...got.flatMap((answer, i) => differing(run[i] ?? "", answer, wants[i] ?? "")));
    }
  }
  return wrong;
}

function differing(request: string, got: string, want: string): Exchanged[] {
  return got === want ? [] : [{ request, got, want }];
}

async function writeInParts(connection: Http1Connection, bytes: string, dice: Dice): Promise<void> {
  const cut = dice.roll(2) === 0 ? dice.roll(bytes.length + 1) : 0;
  connection.write(bytes.slice(0, cut));
  await nextTurn();
  connection.write(bytes.slice(cut));
}

test(
  "heads that differ in one byte are answered on a connection of many callers as on one of their own",
  { timeout: 60_000 + requests * requestMs },
  async () => {
    const each = Math.ceil(requests / connections);
    const talks = Array.from({ length: connections }, (_, i) => talk(new Dice(testSeed * connections + i), each));
    expect((await Promise.all(talks)).flat().slice(0, 3)).toEqual([]);
    const answers = [...fresh.values()];
    // It would say nothing of requests that were all refused.
    for (const subject of callers.values())
      expect(answers.filter((answer) => answer.includes(subject))).not.toEqual([]);
  },
);

test("a head that differs in any one byte from the one before is answered as on a connection of its own", async () => {
  const [token] = callers.keys();
  const head = `GET /sensors/roof/reading HTTP/1.1\r\nHost: ${hosts[0]}\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  const wrong = Array.from(head, async (byte, at) => {
    const other = head.slice(0, at) + String.fromCharCode(byte.charCodeAt(0) ^ 1) + head.slice(at + 1);
    using connection = await openHttp1(greenhouse.address);
    connection.write(head);
    await nextAnswer(connection);
    return differing(other, await lastAnswer(connection, other), await freshAnswer(other));
  });
  expect((await Promise.all(wrong)).flat()).toEqual([]);
});

test("a connection may have an empty line before each of many requests", async () => {
  using connection = await openHttp1(greenhouse.address);
  const [token] = callers.keys();
  const head = `GET /sensors/roof/reading HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  connection.write(`\r\n${head}`.repeat(20));
  for (let i = 0; i < 20; i++) expect((await connection.readAnswer()).httpStatus).toBe(200);
});
