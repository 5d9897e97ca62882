import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openMemoryStore } from "../../../../src/stores/index.ts";
import { openHttp1 } from "@protoport/testing/http";
import { numRunsOf } from "@protoport/testing/process";
import { startPlantServer, tokens, type TestPlantServer } from "../../../support/server/plant-server.ts";

/** How many connections a property opens. */
const connectionsPerProperty = numRunsOf(200);

/** How many connections are concurrent. One whose body is not read takes a second to close. */
const concurrentConnections = 40;

const credential = `authorization: Bearer ${tokens.good}`;

const goodRequests = [
  `DELETE /plants/7 HTTP/1.1\r\nhost: x\r\n${credential}\r\n\r\n`,
  `DELETE /plants/7 HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n${credential}\r\n\r\n0\r\n\r\n`,
  `DELETE http://x/plants/-9223372036854775808?x=1 HTTP/1.1\r\nhost: x\r\nconnection: keep-alive\r\n\r\n`,
  `GET /healthz HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n\r\n`,
  `PUT /plants/7 HTTP/1.0\r\ncontent-length: 4\r\n${credential}\r\n\r\nbody`,
];

// Input that parsers often handle wrongly, in addition to what is allowed there.
// oxfmt-ignore
const stumblingBlocks = [
  "\r\n", "\n", "\0", ":", " ", "\t", "%", "%zz", "/", "//", "..", "?", "#", "0\r\n\r\n", "\xff", "HTTP/1.1",
];

type Mutation = { readonly at: number; readonly removed: number; readonly inserted: string };

const mutation: fc.Arbitrary<Mutation> = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  removed: fc.nat({ max: 8 }),
  inserted: fc.oneof(
    fc.constantFrom("", ...stumblingBlocks),
    fc.uint8Array({ maxLength: 6 }).map((bytes) => Buffer.from(bytes).toString("latin1")),
  ),
});

/** A valid request, and the bytes that follow it. The request must get a response regardless of these bytes. */
const http1Bytes: fc.Arbitrary<{ readonly first: string; readonly rest: string }> = fc.record({
  first: fc.constantFrom(...goodRequests),
  rest: fc
    .tuple(fc.array(fc.constantFrom(...goodRequests), { maxLength: 3 }), fc.array(mutation, { maxLength: 4 }))
    .map(([requests, mutations]) => mutations.reduce(mutate, requests.join(""))),
});

function mutate(text: string, { at, removed, inserted }: Mutation): string {
  const start = Math.floor(at * text.length);
  return text.slice(0, start) + inserted + text.slice(start + removed);
}

// protoport/gateway/test/engine/http2 and protoport/gateway/test/suites/engine-fuzz test random HTTP/2 frames.
describe("a server under fuzzing", () => {
  let server: TestPlantServer;
  beforeAll(async () => {
    server = await startPlantServer({ store: openMemoryStore(new Set([7n])) });
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test("responds to or closes every connection with mutated HTTP/1.1 requests", async () => {
    await overMany(http1Bytes, async ({ first, rest }) => {
      using connection = await openHttp1(server.address);
      connection.write(first + rest);
      const answer = await connection.readResponse();
      connection.socket.end();
      const others = (await connection.readToEnd()).toString("latin1");
      // A request never causes an internal error. 501 is the status for an unknown method.
      for (const [, status] of `${answer.head}${others}`.matchAll(/^HTTP\/1\.1 (\d{3})/gm))
        expect(status === "501" || Number(status) < 500, status).toBe(true);
      if (others !== "") expect(others).toMatch(/^HTTP\/1\.1 \d{3} /);
    });
  });

  test("responds to or closes every connection with random bytes", async () => {
    await overMany(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
      using connection = await openHttp1(server.address);
      connection.socket.end(bytes);
      await connection.readToEnd();
    });
  });
});

async function overMany<Value>(arbitrary: fc.Arbitrary<Value>, send: (value: Value) => Promise<void>): Promise<void> {
  const batch = fc.array(arbitrary, { minLength: concurrentConnections, maxLength: concurrentConnections });
  const property = fc.asyncProperty(batch, async (values) => void (await Promise.all(values.map(send))));
  await fc.assert(property, { numRuns: connectionsPerProperty / concurrentConnections });
}
