import { describe, expect, test } from "vitest";
import { shared } from "../../../../protoport/testing/src/shared.ts";
import { runProgram } from "@protoport/testing/process";
import { openSituationStore, situations } from "../../../support/plants/situation-store.ts";
import { startPlantServer, tokens } from "../../../support/server/plant-server.ts";

// The client examples that use only grpc-js, run with the command in their first line, on a server without TLS.

/** Not representable as a double. As a number, it would be another plant's id. */
const long = 2n ** 53n + 1n;
const plants = new Set<bigint>();
const server = shared(() => startPlantServer({ store: openSituationStore(plants) }));

describe.each(["ts-proto", "proto-loader"])("delete-plant-%s.ts", (name) => {
  const run = async (token: string, id: bigint, ...more: readonly string[]): Promise<string> => {
    const words = [`examples/clients/delete-plant-${name}.ts`, `127.0.0.1:${server.address.port}`, token, String(id)];
    const { stdout, stderr } = await runProgram(process.execPath, [...words, ...more]);
    return stdout + stderr;
  };

  test("deletes only the plant with an id above 2^53", async () => {
    plants.add(long).add(long - 1n);
    expect(await run(tokens.good, long)).toBe(`plant ${long} is deleted\n`);
    expect([plants.has(long), plants.has(long - 1n)]).toEqual([false, true]);
    expect(await run(tokens.good, long)).toBe(`there is no plant ${long}\n`);
  });

  test.each(
    // oxfmt-ignore
    [
      ["prints the code for an invalid token", tokens.unknown, 1n, "UNAUTHENTICATED: the token is not valid\n",
        undefined],
      ["prints the code for an unavailable store", tokens.good, situations.away,
        "UNAVAILABLE: the plant store cannot process the request at the moment\n", undefined],
      ["stops waiting at its deadline", tokens.good, situations.slow, /^DEADLINE_EXCEEDED: /, "200"],
      ["deletes nothing when the id is not an int64", tokens.good, 2n ** 64n + 1n, /int64/, undefined],
    ],
  )("%s", async (_name, token, id, want, timeoutMs = "5000") => {
    plants.add(1n);
    expect(await run(token, id, timeoutMs)).toMatch(want);
    expect(plants.has(1n)).toBe(true);
  });
});
