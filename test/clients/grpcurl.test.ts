import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ProgramResult, runProgram } from "../support/process/child-program.ts";
import { tokens } from "../support/server/plant-server.ts";
import { type ServerPair, startServerPair } from "../support/server/server-pair.ts";
import { situations } from "../support/plants/situation-store.ts";
import { hasProgram } from "../support/process/tools-folder.ts";

const longId = 2n ** 53n + 1n;

/** grpcurl ends with the number of the code above this. */
const codeBase = 64;

/** How grpcurl knows what the service takes. */
const definitions = [
  { name: "by reflection", flags: [] },
  { name: "by the proto", flags: ["-import-path", "proto", "-proto", "plantstore/v1/plant_service.proto"] },
];

// Reflection needs a credential of its own, so that the refusal is that of the call.
const reflecting = ["-reflect-header", `Authorization: Bearer ${tokens.good}`];

function bearer(token: string): string[] {
  return ["-H", `Authorization: Bearer ${token}`];
}

describe.runIf(hasProgram("grpcurl")).each(definitions)("grpcurl, $name", ({ flags }) => {
  let servers: ServerPair;

  beforeAll(async () => {
    servers = await startServerPair(new Set([1n, 2n]));
  });
  afterAll(() => servers[Symbol.asyncDispose]());

  function deletePlant(
    id: bigint,
    credential: readonly string[],
    more: readonly string[] = [],
  ): Promise<ProgramResult> {
    const target = [`127.0.0.1:${servers.cleartext.address.port}`, "plantstore.v1.PlantService/DeletePlant"];
    return runProgram("grpcurl", ["-plaintext", ...flags, ...credential, ...more, "-d", `{"id":"${id}"}`, ...target]);
  }

  test("deletes a plant once", async () => {
    expect(await deletePlant(1n, bearer(tokens.good))).toMatchObject({ exitCode: 0, stdout: "{}\n" });
    const again = await deletePlant(1n, bearer(tokens.good));
    expect(again).toMatchObject({ exitCode: codeBase + 5, stderr: expect.stringContaining("plant 1 not found") });
  });

  test.each([
    { what: "no token", id: 2n, credential: reflecting, code: 16, message: "a bearer token is required" },
    {
      what: "a wrong token",
      id: 2n,
      credential: [...reflecting, "-rpc-header", `Authorization: Bearer ${tokens.unknown}`],
      code: 16,
      message: "the token is not valid",
    },
    {
      what: "an id beyond a double",
      id: longId,
      credential: bearer(tokens.good),
      code: 5,
      message: `plant ${longId} not found`,
    },
  ])("is told of $what", async ({ id, credential, code, message }) => {
    const { exitCode, stderr } = await deletePlant(id, credential);
    expect({ exitCode, stderr }).toEqual({ exitCode: codeBase + code, stderr: expect.stringContaining(message) });
  });

  test("gives up when its deadline passes", async () => {
    const { exitCode } = await deletePlant(situations.slow, bearer(tokens.good), ["-max-time", "3"]);
    expect(exitCode).toBe(codeBase + 4);
  });

  test("deletes a plant over TLS", async () => {
    const target = [`localhost:${servers.secure.address.port}`, "plantstore.v1.PlantService/DeletePlant"];
    const args = ["-cacert", servers.authorityFile, ...flags, ...bearer(tokens.good), "-d", '{"id":"2"}', ...target];
    expect(await runProgram("grpcurl", args)).toMatchObject({ exitCode: 0, stdout: "{}\n" });
  });
});
