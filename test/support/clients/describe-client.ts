import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildLimitMs } from "../../../protoport/testing/src/process/build-step.ts";
import { responseLimitMs, authorityOf, type ClientProgram, type RunningClient, startClient } from "./client-program.ts";
import { tokens } from "../server/plant-server.ts";
import { type ServerPair, startServerPair } from "../server/server-pair.ts";
import { situations } from "../plants/situation-store.ts";

export interface ClientUnderTest {
  readonly name: string;
  /** Generates and compiles the client on the first call. May use an earlier run's output. */
  readonly build: () => Promise<ClientProgram>;
  /** The client's error after its deadline. Default DEADLINE_EXCEEDED. */
  readonly onDeadline?: RegExp;
}

/** Larger than any integer that a double represents exactly, so that a conversion to double is detected. */
const longId = 2n ** 53n + 1n;

/** Describes the results that clients in all languages and protocols must get. */
export function describeClient({ name, build, onDeadline = /^4\b/ }: ClientUnderTest): void {
  describe(name, { timeout: responseLimitMs }, () => {
    let plants: Set<bigint>;
    const opened = new AsyncDisposableStack();
    let servers: ServerPair;
    let client: RunningClient;
    let program: ClientProgram;

    beforeAll(async () => {
      program = await build();
      plants = new Set([1n, 2n]);
      servers = opened.use(await startServerPair(plants));
      client = opened.use(startClient(program, [authorityOf("127.0.0.1", servers.cleartext)]));
    }, buildLimitMs);

    afterAll(() => opened.disposeAsync());

    test("deletes a plant once", async () => {
      expect(await client.deletePlant(1n, tokens.good)).toBe("0");
      expect(plants.has(1n)).toBe(false);
      expect(await client.deletePlant(1n, tokens.good)).toBe("5 plant 1 not found");
    });

    test.each([
      { what: "no token", id: 2n, token: undefined, want: "16 a bearer token is required" },
      { what: "a wrong token", id: 2n, token: tokens.unknown, want: "16 the token is not valid" },
      { what: "an id beyond a double", id: longId, token: tokens.good, want: `5 plant ${longId} not found` },
      { what: "the smallest id", id: -(2n ** 63n), token: tokens.good, want: `5 plant ${-(2n ** 63n)} not found` },
    ])("a call with $what gets the expected status and message", async ({ id, token, want }) => {
      expect(await client.deletePlant(id, token)).toBe(want);
    });

    test("a call fails when its deadline passes", async () =>
      expect(await client.deletePlant(situations.slow, tokens.good, 400)).toMatch(onDeadline));

    test("deletes a plant over TLS", async () => {
      using overTls = startClient(program, [authorityOf("localhost", servers.secure), servers.authorityFile]);
      expect(await overTls.deletePlant(2n, tokens.good)).toBe("0");
      expect(plants.has(2n)).toBe(false);
    });
  });
}
