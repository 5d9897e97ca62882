import { describe, expect, test } from "vitest";
import { openMemoryStore } from "../../src/plantstore/plants/index.ts";
import { runProgram, type ProgramResult } from "../support/process/child-program.ts";
import { startPlantServer, tokens } from "../support/server/plant-server.ts";
import { deletePlantProcedure } from "../support/gateway/wire-format.ts";

const protocols = [
  { protocol: "grpc", flags: ["--http2-prior-knowledge"] },
  { protocol: "grpcweb", flags: [] },
  { protocol: "connect", flags: [] },
];

describe("buf curl", () => {
  test.each(protocols)("deletes a plant once, as $protocol", async ({ protocol, flags }) => {
    await using server = await startPlantServer({ store: openMemoryStore(new Set([42n])) });
    const url = `http://127.0.0.1:${String(server.address.port)}${deletePlantProcedure}`;
    const call = (...args: string[]): Promise<ProgramResult> => {
      const order = ["curl", "--schema", "proto", "--protocol", protocol, ...flags, ...args];
      return runProgram("node_modules/.bin/buf", [...order, "-d", '{"id":"42"}', url]);
    };

    const credential = ["-H", `Authorization: Bearer ${tokens.good}`];
    expect(await call(...credential)).toMatchObject({ exitCode: 0, stdout: "{}\n" });
    const again = await call(...credential);
    expect(JSON.parse(again.stderr)).toStrictEqual({ code: "not_found", message: "plant 42 not found" });
    const anonymous = await call();
    expect(JSON.parse(anonymous.stderr)).toStrictEqual({
      code: "unauthenticated",
      message: "a bearer token is required",
    });
  });
});
